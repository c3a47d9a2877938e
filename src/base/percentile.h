#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo {

// Of `count` > 0 values, at(i) being the i-th in ascending order: between neighbours a line, as numpy has it.
template <class At>
double percentile(std::uint64_t count, double percent, At&& at) {
  const double place = percent / 100 * static_cast<double>(count - 1);
  const auto below = static_cast<std::uint64_t>(place);
  const double low = at(below), high = at(std::min(below + 1, count - 1));
  return low + (high - low) * (place - static_cast<double>(below));
}

}  // namespace octavo
