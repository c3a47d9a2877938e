// Cuts a stream of server-sent events where they end, so that a whole event is passed on or changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

class EventCutter {
 public:
  static constexpr std::string_view kData = "data: ";

  // The events that these bytes complete, each with the empty line that ends it.
  std::vector<std::string> push(std::string_view bytes) {
    rest_ += bytes;
    std::vector<std::string> events;
    std::size_t begin = 0;
    for (std::size_t end; (end = rest_.find("\n\n", begin)) != std::string::npos; begin = end + 2)
      events.push_back(rest_.substr(begin, end + 2 - begin));
    rest_.erase(0, begin);
    return events;
  }

  // What has come of the next one.
  const std::string& rest() const { return rest_; }
  void clear() { rest_.clear(); }

 private:
  std::string rest_;
};

}  // namespace octavo::fleet
