// Fraction of its share of requests that a new endpoint gets.
#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo::fleet {

// Its share rises over `ramp_us`, 0 to 1, beside that of the endpoint that has been there longest: a fleet in
// which all are new has no slow ones. since_us: when it became available.
inline double slow_start_share(std::int64_t now_us, std::int64_t since_us, std::int64_t oldest_since_us,
                               std::int64_t ramp_us) {
  const std::int64_t age = now_us - since_us;
  const std::int64_t whole = std::min(ramp_us, now_us - oldest_since_us);
  return age >= whole ? 1 : static_cast<double>(age) / static_cast<double>(whole);
}

}  // namespace octavo::fleet
