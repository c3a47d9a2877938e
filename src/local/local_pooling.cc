#include "local/local_pooling.h"

#include <utility>

namespace octavo {

LocalPooling::LocalPooling(Service& service, PoolingPlan plan)
    : service_(&service), plan_(std::move(plan)), vectors_(plan_.texts.size()) {}

Result<LocalPooling> LocalPooling::start(Service& service, PoolingPlan plan, std::size_t job,
                                         Arrivals& arrivals) {
  LocalPooling pooling(service, std::move(plan));
  for (std::size_t i = 0; i < pooling.plan_.texts.size(); ++i) {
    auto id = service.engine.submit(pooling.plan_.take_request(i), arrivals.sink(job));
    if (!id) {
      pooling.abort();
      return std::unexpected(std::move(id.error()));
    }
    pooling.unread_.emplace(*id, i);
  }
  return pooling;
}

void LocalPooling::take(Output&& output) {
  const auto found = unread_.find(output.id);
  if (found == unread_.end() || !output.finished) return;
  vectors_[found->second] = std::move(output.pooled);
  unread_.erase(found);
  if (output.error && !error_) error_ = std::move(output.error);
  if (*output.finished == FinishReason::error || *output.finished == FinishReason::abort)
    reason_ = *output.finished;
}

void LocalPooling::abort() const {
  for (const auto& [id, text] : unread_) service_->engine.abort(id);
}

Result<std::string> LocalPooling::reply() {
  if (error_) return std::unexpected(std::move(*error_));
  if (reason_ != FinishReason::stop)
    return failure(ErrorCode::unavailable, "the texts were not computed to their end");
  return plan_.reply(std::move(vectors_)).body;
}

}  // namespace octavo
