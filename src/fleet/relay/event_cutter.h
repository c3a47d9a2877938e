// Splits a stream into complete server-sent events.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

// Returns the text after "data:", without the line ends. Returns nullopt if the event does not begin with
// "data:".
inline std::optional<std::string_view> data_of(std::string_view event) {
  if (!event.starts_with("data:")) return std::nullopt;
  event.remove_prefix(event.starts_with("data: ") ? 6 : 5);
  return event.substr(0, event.find_last_not_of("\r\n") + 1);
}

class EventCutter {
 public:
  // Adds bytes to the stream, and returns the events that are now complete, each with its empty line. Lines
  // may end with LF or CR LF.
  std::vector<std::string> push(std::string_view bytes) {
    // The bytes of earlier calls may end with LF CR, the first two bytes of the separator LF CR LF.
    constexpr std::size_t kHalfEnd = 2;
    std::size_t at = rest_.size() - std::min(rest_.size(), kHalfEnd);
    rest_ += bytes;
    std::vector<std::string> events;
    std::size_t begin = 0;
    while ((at = rest_.find('\n', at)) != std::string::npos) {
      const std::string_view behind = std::string_view(rest_).substr(++at, 2);
      if (!behind.starts_with('\n') && behind != "\r\n") continue;
      at += behind.starts_with('\n') ? 1 : 2;
      events.push_back(rest_.substr(begin, at - begin));
      begin = at;
    }
    rest_.erase(0, begin);
    return events;
  }

  const std::string& rest() const { return rest_; }
  void clear() { rest_.clear(); }

 private:
  std::string rest_;
};

}  // namespace octavo::fleet
