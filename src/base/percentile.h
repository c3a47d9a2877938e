#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo {

// at(i) must return the value with index i in ascending order. count must be positive. Interpolates linearly,
// as numpy does.
template <class At>
double percentile(std::uint64_t count, double percent, At&& at) {
  const double rank = percent / 100 * static_cast<double>(count - 1);
  const auto below = static_cast<std::uint64_t>(rank);
  const double low = at(below), high = at(std::min(below + 1, count - 1));
  return low + (high - low) * (rank - static_cast<double>(below));
}

}  // namespace octavo
