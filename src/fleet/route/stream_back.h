// The response to the client: complete, or a stream that several workers may continue.
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

  // Lets the stream continue at another worker after a failure, if the request allows it. Returns the body
  // for the first worker; null means the client's body.
  std::shared_ptr<const std::string> make_resumable();

  bool begun() const { return begun_; }  // the client has received the headers
  bool is_events() const { return events_; }
  // id of the response; "": the stream cannot continue at another worker, or has no event yet
  std::string id() const { return resumable_ ? resumable_->id() : ""; }
  bool is_full() const;      // the client does not read, so the buffer is full
  bool is_complete() const;  // the last event has arrived
  // Returns whether a response with these headers can continue the client's stream.
  bool continued_by(const http::Response& head) const;

  void respond(http::Response whole) { exchange_->respond(std::move(whole)); }
  void begin(http::Response head);
  // Returns false if the stream reports that its worker cannot continue.
  bool write(std::string_view piece);
  // Must be called at the end of the worker's response. Writes the last event if its blank line is missing.
  bool end_events();
  // Writes an event or a comment that the router has made.
  void write_own(std::string_view event);
  void finish() { exchange_->finish(); }

  // Returns the missing final events of a broken stream if its answer is complete, and nullopt if it is
  // not.
  std::optional<std::string> rest() const;
  void write_rest(const std::string& rest) { exchange_->write(rest); }
  // Returns the body for another worker. Returns null if no worker can continue, or if the stream has
  // continued `limit` times.
  std::shared_ptr<const std::string> migrate(int limit);

 private:
  const std::shared_ptr<http::Exchange> exchange_;
  std::optional<ResumableStream> resumable_;
  int migrations_ = 0;
  bool begun_ = false;
  bool events_ = false;
};

}  // namespace octavo::fleet
