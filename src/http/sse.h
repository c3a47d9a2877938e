// Server-sent events (WHATWG HTML, section 9.2): writer and reader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::http {

// Returns "data: {payload}\n\n". The payload contains no line break: it is JSON on one line.
std::string sse_event(std::string_view payload);
// Returns "event: {name}\ndata: {payload}\n\n".
std::string sse_event(std::string_view name, std::string_view payload);

// Splits a byte stream into events and returns their data. Any pieces of the stream are accepted. Comments
// and fields other than data are ignored.
class SseReader {
 public:
  // Returns the events that `bytes` completes, in order.
  std::vector<std::string> push(std::string_view bytes);

 private:
  void take_line(std::string_view line, std::vector<std::string>& events);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace octavo::http
