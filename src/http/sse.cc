#include "http/sse.h"

#include "base/check.h"

namespace octavo::http {

std::string sse_event(std::string_view payload) {
  CHECK(payload.find_first_of("\r\n") == std::string_view::npos, "an event's payload is one line");
  std::string event;
  event.reserve(payload.size() + 8);
  event.append("data: ").append(payload).append("\n\n");
  return event;
}

std::string sse_event(std::string_view name, std::string_view payload) {
  std::string event;
  event.reserve(name.size() + payload.size() + 16);
  return event.append("event: ").append(name).append("\n").append(sse_event(payload));
}

std::vector<std::string> SseReader::push(std::string_view bytes) {
  std::vector<std::string> events;
  for (const char c : bytes) {
    if (c != '\n') {
      line_.push_back(c);
      continue;
    }
    if (line_.ends_with('\r')) line_.pop_back();
    take_line(line_, events);
    line_.clear();
  }
  return events;
}

void SseReader::take_line(std::string_view line, std::vector<std::string>& events) {
  if (line.empty()) {
    if (has_data_) events.push_back(std::move(data_));
    data_.clear();
    has_data_ = false;
    return;
  }
  if (!line.starts_with("data:")) return;
  line.remove_prefix(5);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (has_data_) data_.push_back('\n');
  data_.append(line);
  has_data_ = true;
}

}  // namespace octavo::http
