// Histogram of the times between chunks in microseconds. A histogram needs less memory than a list.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace octavo::traffic {

class GapCounts {
 public:
  void add(std::int64_t gap_us) {
    if (gap_us < kShort) {
      ++short_[static_cast<std::size_t>(gap_us)];
    } else {
      ++long_[gap_us];
    }
  }

  // Calls visit(gap_us, count) in ascending order.
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::int64_t gap = 0; gap < kShort; ++gap)
      if (const std::uint64_t count = short_[static_cast<std::size_t>(gap)]) visit(gap, count);
    for (const auto& [gap, count] : long_) visit(gap, count);
  }

 private:
  static constexpr std::int64_t kShort = 1 << 20;
  std::vector<std::uint64_t> short_ = std::vector<std::uint64_t>(kShort);
  std::map<std::int64_t, std::uint64_t> long_;
};

}  // namespace octavo::traffic
