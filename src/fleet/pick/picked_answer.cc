#include "fleet/pick/picked_answer.h"

#include <utility>

#include "base/clock.h"
#include "fleet/pick/usage.h"

namespace octavo::fleet {

void PickedAnswer::sent(Choice choice) {
  choice_ = std::move(choice);
  sent_us_ = now_us();
}

void PickedAnswer::grpc(std::string_view path, bool streams) {
  grpc_.emplace(path);
  streams_ = streams;
}

void PickedAnswer::content_type(std::string_view type) {
  if (!grpc_) streams_ = type.starts_with("text/event-stream");
}

void PickedAnswer::piece(std::string_view bytes) {
  if (bytes.empty()) return;
  if (first_byte_us_ == 0) {
    first_byte_us_ = now_us();
    if (picked()) balancer_.first_token(choice_.booking);
  }
  bytes_ += bytes.size();
  const std::int64_t tokens = grpc_ ? grpc_->read(bytes) : 1;
  if (streams_ && picked() && tokens > 0) balancer_.grow(choice_.booking, tokens);
  if (grpc_) return;
  tail_ += bytes;
  if (tail_.size() > kUsageTailBytes) tail_.erase(0, tail_.size() - kUsageTailBytes);
}

std::optional<boost::json::object> PickedAnswer::usage() const {
  return grpc_ ? grpc_->usage() : usage_object(tail_);
}

void PickedAnswer::ended(std::int64_t arrived_us, PickedRequest& request) {
  const Usage counts = token_counts(usage());
  request.input_tokens = counts.input_tokens;
  request.output_tokens = counts.output_tokens;
  request.cached_tokens = counts.cached_tokens;
  request.response_bytes = bytes_;
  request.streamed = streams_;
  if (first_byte_us_ > 0)
    request.first_byte_seconds = static_cast<double>(first_byte_us_ - arrived_us) * 1e-6;
  if (!picked()) return;
  if (choice_.inputs && request.status == 200) report_latency(request);
  balancer_.ended(choice_.booking, Outcome::neither);
  choice_.endpoint = nullptr;
}

// Reports TTFT and TPOT of a stream. For a complete response, reports the time to its end as TTFT.
void PickedAnswer::report_latency(const PickedRequest& request) const {
  const auto ms = [](std::int64_t from_us, std::int64_t to_us) {
    return static_cast<double>(to_us - from_us) * 1e-3;
  };
  const std::int64_t now = now_us();
  const std::int64_t more = request.output_tokens - 1;
  if (first_byte_us_ == 0) return;
  balancer_.took(choice_.booking, *choice_.inputs, ms(sent_us_, streams_ ? first_byte_us_ : now),
                 streams_ && more > 0 ? ms(first_byte_us_, now) / static_cast<double>(more) : -1);
}

}  // namespace octavo::fleet
