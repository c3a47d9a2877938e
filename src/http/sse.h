// Writes and parses server-sent events (WHATWG HTML, section 9.2).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::http {

// payload: JSON without line breaks. Returns "data: {payload}\n\n".
std::string sse_event(std::string_view payload);
// Returns "event: {name}\ndata: {payload}\n\n".
std::string sse_event(std::string_view name, std::string_view payload);

// Splits a byte stream into events and returns their data. Ignores comments and other fields. The stream
// may be divided in any way.
class SseReader {
 public:
  // Returns the events that are complete with `bytes`.
  std::vector<std::string> push(std::string_view bytes);

 private:
  void take_line(std::string_view line, std::vector<std::string>& events);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace octavo::http
