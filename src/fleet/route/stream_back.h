// The answer on its way to the client: whole, or as a stream that several workers may continue.
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

  // Lets another worker continue the stream, if the request allows it. Returns the body for the first worker,
  // or null for the client's.
  std::shared_ptr<const std::string> make_resumable();

  bool begun() const { return begun_; }  // the client has seen the head
  bool is_events() const { return events_; }
  bool is_full() const;                                 // the client does not read
  bool is_complete() const;                             // the last event has come
  bool continued_by(const http::Response& head) const;  // the answer follows what the client has seen

  void respond(http::Response whole) { exchange_->respond(std::move(whole)); }
  void begin(http::Response head);
  // False: the stream itself reports that its worker cannot continue.
  bool write(std::string_view piece);
  bool end_events();  // the worker's answer has ended: writes an event that nothing ended
  void write_error(std::string_view event);
  void finish() { exchange_->finish(); }

  // The stream broke: what is left of it where the answer itself was complete.
  std::optional<std::string> rest() const;
  void write_rest(const std::string& rest) { exchange_->write(rest); }
  // The body for another worker; null if no worker can continue, or `limit` workers have.
  std::shared_ptr<const std::string> migrate(int limit);

 private:
  const std::shared_ptr<http::Exchange> exchange_;
  std::optional<ResumableStream> resumable_;
  int migrations_ = 0;
  bool begun_ = false;
  bool events_ = false;
};

}  // namespace octavo::fleet
