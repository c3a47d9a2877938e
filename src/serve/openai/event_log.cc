#include "serve/openai/event_log.h"

#include <utility>

namespace octavo::openai {

void EventLog::send_to(std::shared_ptr<http::Exchange> exchange, std::int64_t after) {
  auto reader = std::make_shared<Reader>(std::move(exchange));
  {
    const std::lock_guard lock(mutex_);
    const auto next = static_cast<std::size_t>(after + 1);
    reader->sent = next < starts_.size() ? starts_[next] : text_.size();
  }
  reader->exchange->start_stream(
      {.content_type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}}});
  add(std::move(reader));
}

std::size_t EventLog::bytes() const {
  const std::lock_guard lock(mutex_);
  return text_.size();
}

void EventLog::start_stream(http::Response response) {
  auto reader = std::make_shared<Reader>(take_creator());
  reader->exchange->start_stream(std::move(response));
  add(std::move(reader));
}

std::shared_ptr<http::Exchange> EventLog::take_creator() {
  const std::lock_guard lock(mutex_);
  return std::move(creator_);
}

bool EventLog::write(std::string_view piece) {
  {
    const std::lock_guard lock(mutex_);
    if (text_.size() + piece.size() > kBytesMax) return false;
    if (*written_ += piece.size(); *written_ > kWrittenBytesMax) {
      *written_ -= piece.size();
      return false;
    }
    counted_ += piece.size();
    for (std::size_t at = 0; at < piece.size();) {
      if (piece.substr(at).starts_with("event:")) starts_.push_back(text_.size() + at);
      const std::size_t end = piece.find("\n\n", at);
      at = end == std::string_view::npos ? piece.size() : end + 2;
    }
    text_ += piece;
  }
  send_to_all();
  return true;
}

void EventLog::finish() {
  {
    const std::lock_guard lock(mutex_);
    end();
  }
  send_to_all();
}

void EventLog::end() {
  over_ = true;
  *written_ -= std::exchange(counted_, 0);
}

void EventLog::cut() {
  std::vector<ReaderPtr> readers;
  {
    const std::lock_guard lock(mutex_);
    end();
    readers.swap(readers_);
  }
  for (const ReaderPtr& reader : readers) reader->exchange->cut();
}

void EventLog::add(ReaderPtr reader) {
  {
    const std::lock_guard lock(mutex_);
    readers_.push_back(reader);
  }
  send(reader);
}

void EventLog::send_to_all() {
  std::vector<ReaderPtr> readers;
  {
    const std::lock_guard lock(mutex_);
    readers = readers_;
  }
  for (const ReaderPtr& reader : readers) send(reader);
}

std::string EventLog::take(Reader& reader, bool& last) {
  constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
  const std::lock_guard lock(mutex_);
  std::string piece = text_.substr(reader.sent, kPieceBytes);
  reader.sent += piece.size();
  last = over_ && reader.sent == text_.size();
  if (piece.empty() && !last) reader.busy = false;
  return piece;
}

void EventLog::send(const ReaderPtr& reader) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(reader->busy, true)) return;
  }
  for (bool last = false, reads = true; reads && !last;) {
    const std::string piece = take(*reader, last);
    if (piece.empty() && !last) return;
    if (!piece.empty()) reads = reader->exchange->write(piece);
    if (last && reads) reader->exchange->finish();
    const auto resume = [self = shared_from_this(), reader] {
      {
        const std::lock_guard lock(self->mutex_);
        reader->busy = false;
      }
      self->send(reader);
    };
    if (reads && !last && reader->exchange->wait_writable(resume)) return;
  }
  const std::lock_guard lock(mutex_);
  std::erase(readers_, reader);
}

}  // namespace octavo::openai
