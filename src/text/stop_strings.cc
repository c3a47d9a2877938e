#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

std::vector<std::size_t> borders(std::string_view text) {
  std::vector<std::size_t> border(text.size() + 1, 0);
  for (std::size_t n = 1; n < text.size(); ++n) {
    std::size_t length = border[n];
    while (length > 0 && text[length] != text[n]) length = border[length];
    border[n + 1] = text[length] == text[n] ? length + 1 : 0;
  }
  return border;
}

}  // namespace

Result<StopSplitter> StopSplitter::create(std::vector<std::string> stops, bool include_stop_string) {
  if (stops.size() > kStopStringsMax)
    return invalid("stop", "{} stop strings are more than the limit of {}", stops.size(), kStopStringsMax);
  StopSplitter splitter(include_stop_string);
  for (std::string& stop : stops) {
    if (stop.empty()) return invalid("stop", "a stop string must not be empty");
    if (stop.size() > kStopStringBytesMax) {
      return invalid("stop", "a stop string has {} bytes, but the limit is {}", stop.size(),
                     kStopStringBytesMax);
    }
    std::vector<std::size_t> border = borders(stop);
    splitter.patterns_.push_back({std::move(stop), std::move(border)});
  }
  return splitter;
}

StopSplitter::Step StopSplitter::push(std::string_view piece) {
  if (stopped_) return {};
  for (const char byte : piece) {
    held_ += byte;
    const std::optional<std::size_t> stop = advance(byte);
    if (!stop) continue;
    stopped_ = true;
    if (!include_stop_string_) held_.resize(held_.size() - patterns_[*stop].text.size());
    return {std::exchange(held_, {}), stop};
  }
  std::size_t keep = 0;
  for (const Pattern& pattern : patterns_) keep = std::max(keep, pattern.matched);
  std::string text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return {std::move(text), std::nullopt};
}

std::string StopSplitter::finish() {
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  return std::exchange(held_, {});
}

// Adds a byte. Returns the index of the longest stop string that ends at this byte.
std::optional<std::size_t> StopSplitter::advance(char byte) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    Pattern& pattern = patterns_[i];
    while (pattern.matched > 0 && pattern.text[pattern.matched] != byte)
      pattern.matched = pattern.border[pattern.matched];
    if (pattern.text[pattern.matched] == byte) ++pattern.matched;
    const bool complete = pattern.matched == pattern.text.size();
    if (complete && (!found || pattern.text.size() > patterns_[*found].text.size())) found = i;
  }
  return found;
}

}  // namespace octavo
