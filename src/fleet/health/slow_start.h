// Slow start: a new endpoint first gets a small fraction of its share of requests.
#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo::fleet {

// Returns the fraction of its share of requests that an endpoint gets. The fraction rises from 0 to 1 in the
// `ramp_us` after `since_us`, the time at which the endpoint became available. The ramp is never longer than
// the age of the oldest endpoint, so all endpoints of a new fleet get full shares.
inline double slow_start_share(std::int64_t now_us, std::int64_t since_us, std::int64_t oldest_since_us,
                               std::int64_t ramp_us) {
  const std::int64_t age = now_us - since_us;
  const std::int64_t whole = std::min(ramp_us, now_us - oldest_since_us);
  return age >= whole ? 1 : static_cast<double>(age) / static_cast<double>(whole);
}

}  // namespace octavo::fleet
