// The answer that is sent to the client: whole, or as a stream that several workers may continue.
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

  // If the request allows it, lets another worker continue the stream. Returns the body for the first worker;
  // null: the client's body.
  std::shared_ptr<const std::string> make_resumable();

  bool begun() const { return begun_; }  // the client has received the head
  bool is_events() const { return events_; }
  std::string id() const { return resumable_ ? resumable_->id() : ""; }  // id of a stream that may continue
  bool is_full() const;                                 // the client does not read
  bool is_complete() const;                             // the last event was received
  bool continued_by(const http::Response& head) const;  // whether this answer can continue what the client
                                                        // has received

  void respond(http::Response whole) { exchange_->respond(std::move(whole)); }
  void begin(http::Response head);
  // False: the stream itself reports that its worker cannot continue.
  bool write(std::string_view piece);
  bool end_events();  // call it at the end of the worker's answer: writes an event that lacks a terminator
  void write_error(std::string_view event);
  void finish() { exchange_->finish(); }

  // After the stream broke: the missing events if the answer itself was complete; otherwise nullopt.
  std::optional<std::string> rest() const;
  void write_rest(const std::string& rest) { exchange_->write(rest); }
  // The body for another worker. Null: no worker can continue, or the stream was continued `limit` times.
  std::shared_ptr<const std::string> migrate(int limit);

 private:
  const std::shared_ptr<http::Exchange> exchange_;
  std::optional<ResumableStream> resumable_;
  int migrations_ = 0;
  bool begun_ = false;
  bool events_ = false;
};

}  // namespace octavo::fleet
