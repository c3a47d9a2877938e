#include "serve/pooling.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/out_of_memory.h"
#include "openai/errors.h"

namespace octavo {
namespace {

std::vector<int> lengths_of(const PoolingPlan& plan) {
  std::vector<int> lengths;
  for (const Tokenizer::Texts& text : plan.texts) lengths.push_back(static_cast<int>(text.ids.size()));
  return lengths;
}

Price price_of(const PoolingPlan& plan, int pooled_size) {
  constexpr std::int64_t kTextBytes = 8 << 10;
  constexpr std::int64_t kTokenBytes = 8;
  constexpr std::int64_t kNumberBytes = 16;  // bytes of one number as float and as text
  const std::int64_t texts = std::ssize(plan.texts);
  std::int64_t media = 0;
  for (const std::vector<MediaPart>& parts : plan.media)
    for (const MediaPart& part : parts) media += std::ssize(part.bytes);
  return {.answers = static_cast<int>(texts),
          .bytes = texts * kTextBytes + plan.vectors() * pooled_size * kNumberBytes +
                   plan.tokens() * kTokenBytes + media};
}

}  // namespace

Pooling::Pooling(std::shared_ptr<Service> service, PoolingPlan plan, Admission::Ticket ticket,
                 std::shared_ptr<http::Exchange> exchange)
    : service_(std::move(service)),
      plan_(std::move(plan)),
      ticket_(std::move(ticket)),
      submission_(service_->engine),
      exchange_(std::move(exchange)),
      lengths_(lengths_of(plan_)),
      vectors_(plan_.texts.size()),
      unfinished_(plan_.texts.size()) {}

void Pooling::log_end(FinishReason reason) const {
  if (!plan_.account.cost_id.empty()) service_->metrics.accounts.unread.put(plan_.account.cost_id, cost_);
  service_->metrics.accounts.log(
      {.id = plan_.request_id,
       .tenant = plan_.account.tenant,
       .path = plan_.account.path,
       .model = service_->options.rules.model_names.front(),
       .finish = name(reason),
       .prompt_tokens = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0}),
       .answers = static_cast<int>(lengths_.size()),
       .seconds = static_cast<double>(now_us() - arrived_us_) * 1e-6,
       .cost = cost_});
}

Result<> Pooling::start(std::shared_ptr<Service> service, PoolingPlan plan,
                        std::shared_ptr<http::Exchange> exchange) {
  TRY(Admission::Ticket ticket, admit(service->admission, service->metrics, plan.client,
                                      price_of(plan, service->engine_info.tasks.size_for(plan.task))));
  const std::shared_ptr<Pooling> self(
      new Pooling(std::move(service), std::move(plan), std::move(ticket), std::move(exchange)));
  self->exchange_->on_close([weak = std::weak_ptr(self)](http::CloseReason) {
    if (const auto pooling = weak.lock()) pooling->submission_.cancel();
  });
  const auto submitted = within_memory([&] { return self->submit(); });
  if (submitted) {
    self->exchange_->release_body();
    return {};
  }
  if (submitted.error().code == ErrorCode::resource_exhausted) self->service_->metrics.admission_rejected();
  {
    const std::lock_guard lock(self->mutex_);
    // The reply is the error, so the results of texts that were already submitted must be dropped.
    self->unfinished_ = 0;
  }
  self->submission_.cancel();
  return submitted;
}

Result<> Pooling::submit() {
  for (std::size_t i = 0; i < plan_.texts.size(); ++i) {
    TRY_VOID(submission_.submit(plan_.take_request(i), sink_of(shared_from_this(), i)));
  }
  return {};
}

void Pooling::deliver(std::size_t text, Output&& output) noexcept {
  if (!output.finished) return;
  service_->metrics.answer_ended({.engine = output.engine,
                                  .reason = *output.finished,
                                  .prompt_tokens = lengths_[text],
                                  .times = output.times,
                                  .finished_us = now_us()});
  const AnswerCost cost = output.cost;
  const FinishReason reason = *output.finished;
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    ticket_.give_back_answer();
    vectors_[text] = std::move(output.pooled);
    if (output.error && !error_) error_ = std::move(output.error);
    cost_ += cost;
    last = unfinished_ > 0 && --unfinished_ == 0;
  }
  service_->metrics.accounts.charge(plan_.account.tenant, cost, last ? 1 : 0);
  if (last) {
    log_end(reason);
    plan_.account.cost_open.reset();
    service_->delivery.post([self = shared_from_this()] { self->conclude(); });
  }
}

// Called after the last deliver().
void Pooling::conclude() {
  if (submission_.cancelled()) return;
  http::Response response;
  if (!error_)
    if (const auto done = within_memory([&]() -> Result<> {
          response = plan_.reply(std::move(vectors_));
          return {};
        });
        !done)
      error_ = done.error();
  if (error_) response = plan_.error_response(*error_);
  if (plan_.account.in_header) response.headers.set(std::string(kCostHeader), cost_text(cost_));
  exchange_->respond(std::move(response));
}

}  // namespace octavo
