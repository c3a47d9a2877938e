// The fraction of its normal share of requests that a new endpoint gets.
#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo::fleet {

// The fraction for an endpoint; it rises from 0 to 1 over `ramp_us`, relative to the oldest endpoint. If all
// endpoints are new, all have the full share. since_us: when it became available.
inline double slow_start_share(std::int64_t now_us, std::int64_t since_us, std::int64_t oldest_since_us,
                               std::int64_t ramp_us) {
  const std::int64_t age = now_us - since_us;
  const std::int64_t whole = std::min(ramp_us, now_us - oldest_since_us);
  return age >= whole ? 1 : static_cast<double>(age) / static_cast<double>(whole);
}

}  // namespace octavo::fleet
