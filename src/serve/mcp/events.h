// Writes the server-sent events of a response. Writes nothing if the client did not request a stream.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <string_view>

#include "http/exchange.h"

namespace octavo::mcp {

class Events {
 public:
  Events(std::shared_ptr<http::Exchange> exchange, bool stream)
      : exchange_(std::move(exchange)), stream_(stream) {}

  bool stream() const { return stream_; }
  bool begun() const { return sequence_ > 0; }
  void write(std::string_view type, boost::json::object fields);
  // Writes all events of a complete item.
  void write_item(const boost::json::object& item, std::int64_t index);
  void finish() { exchange_->finish(); }

 private:
  std::shared_ptr<http::Exchange> exchange_;
  bool stream_;
  int sequence_ = 0;
};

}  // namespace octavo::mcp
