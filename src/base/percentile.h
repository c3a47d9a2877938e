#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo {

// Percentile of `count` values, count > 0. at(i): the i-th value in ascending order. Interpolates linearly
// between neighbours, as numpy does.
template <class At>
double percentile(std::uint64_t count, double percent, At&& at) {
  const double place = percent / 100 * static_cast<double>(count - 1);
  const auto below = static_cast<std::uint64_t>(place);
  const double low = at(below), high = at(std::min(below + 1, count - 1));
  return low + (high - low) * (place - static_cast<double>(below));
}

}  // namespace octavo
