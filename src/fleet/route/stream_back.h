// The answer to the client: complete, or a stream that several workers may continue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fleet/route/resumable_stream.h"
#include "http/exchange.h"

namespace octavo::fleet {

class StreamBack {
 public:
  explicit StreamBack(std::shared_ptr<http::Exchange> exchange) : exchange_(std::move(exchange)) {}

  // Makes the stream continue at another worker after a failure, if the request allows it. Returns the body
  // for the first worker; null: the client's body.
  std::shared_ptr<const std::string> make_resumable();

  bool begun() const { return begun_; }  // the client has received the head
  bool is_events() const { return events_; }
  // id of the stream; "": it cannot continue at another worker
  std::string id() const { return resumable_ ? resumable_->id() : ""; }
  bool is_full() const;      // the client does not read
  bool is_complete() const;  // the last event has arrived
  // an answer with this head can continue the client's stream
  bool continued_by(const http::Response& head) const;

  void respond(http::Response whole) { exchange_->respond(std::move(whole)); }
  void begin(http::Response head);
  // Returns false if the stream reports that its worker cannot continue.
  bool write(std::string_view piece);
  // writes the last event if its terminator is missing; call it at the end of the worker's answer
  bool end_events();
  // Writes an event of the router, or a comment.
  void write_own(std::string_view event);
  void finish() { exchange_->finish(); }

  // After a broken stream: returns the missing events if the answer is complete; otherwise nullopt.
  std::optional<std::string> rest() const;
  void write_rest(const std::string& rest) { exchange_->write(rest); }
  // Returns the body for another worker; null if no worker can continue, or the stream has continued `limit`
  // times.
  std::shared_ptr<const std::string> migrate(int limit);

 private:
  const std::shared_ptr<http::Exchange> exchange_;
  std::optional<ResumableStream> resumable_;
  int migrations_ = 0;
  bool begun_ = false;
  bool events_ = false;
};

}  // namespace octavo::fleet
