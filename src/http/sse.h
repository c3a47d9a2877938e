// Server-sent events (WHATWG HTML, section 9.2): writer and reader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::http {

// "data: {payload}\n\n". The payload contains no line break: JSON on one line.
std::string sse_event(std::string_view payload);
// "event: {name}\ndata: {payload}\n\n".
std::string sse_event(std::string_view name, std::string_view payload);

// Splits a byte stream into events and returns their data. The bytes may be split anywhere. Comments and
// fields other than data are ignored.
class SseReader {
 public:
  // Returns the events that these bytes complete, in order.
  std::vector<std::string> push(std::string_view bytes);

 private:
  void take_line(std::string_view line, std::vector<std::string>& events);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace octavo::http
