#include "fleet/route/stream_back.h"

#include <utility>

#include "fleet/relay/relay.h"

namespace octavo::fleet {

std::shared_ptr<const std::string> StreamBack::make_resumable() {
  const http::Request& request = exchange_->request();
  resumable_ = ResumableStream::of(request.path, request.body);
  return resumable_ ? std::make_shared<const std::string>(resumable_->body()) : nullptr;
}

bool StreamBack::is_full() const { return exchange_->unsent_bytes() >= kUnsentBytesMax; }

bool StreamBack::is_complete() const { return resumable_ && resumable_->ended(); }

bool StreamBack::continued_by(const http::Response& head) const {
  return head.status == 200 && resumable_ && (!resumable_->begun() || head.headers.find("X-Octavo-Resumed"));
}

void StreamBack::begin(http::Response head) {
  begun_ = true;
  events_ = is_event_stream(head);
  exchange_->start_stream(std::move(head));
}

bool StreamBack::write(std::string_view piece) {
  if (!events_ || !resumable_) {
    exchange_->write(piece);
    return true;
  }
  if (const std::string events = resumable_->push(piece); !events.empty()) exchange_->write(events);
  return !resumable_->failed();
}

bool StreamBack::end_events() {
  if (!events_ || !resumable_) return true;
  if (const std::string last = resumable_->finish(); !last.empty()) exchange_->write(last);
  return !resumable_->failed();
}

void StreamBack::write_own(std::string_view event) { exchange_->write(event); }

std::optional<std::string> StreamBack::rest() const {
  return events_ && resumable_ ? resumable_->rest() : std::nullopt;
}

std::shared_ptr<const std::string> StreamBack::migrate(int limit) {
  if (!events_ || !resumable_ || !resumable_->knows_tokens() || ++migrations_ > limit) return nullptr;
  resumable_->lost();
  return std::make_shared<const std::string>(resumable_->body());
}

}  // namespace octavo::fleet
