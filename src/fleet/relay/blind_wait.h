// Timeouts for engines that report no load. With these engines, a proxy cannot see whether a request is still
// running.
#pragma once

#include <algorithm>
#include <cstddef>

namespace octavo::fleet {

// Returns the time in ms after which the request counts as lost: base_ms plus 1 ms for each 4 bytes of the
// prompt (about one token), and at most 10 minutes more than base_ms.
inline int blind_wait_ms(int base_ms, std::size_t prompt_bytes) {
  constexpr std::size_t kBytesOfAMs = 4, kMostMs = 600'000;
  return base_ms + static_cast<int>(std::min(prompt_bytes / kBytesOfAMs, kMostMs));
}

}  // namespace octavo::fleet
