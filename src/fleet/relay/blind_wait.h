// Timeouts for engines that report no load, so that a proxy cannot see whether they still have a request.
#pragma once

#include <algorithm>
#include <cstddef>

namespace octavo::fleet {

// Returns the time in ms after which the request counts as lost: base_ms plus 1 ms for each prompt token,
// of about 4 bytes.
inline int blind_wait_ms(int base_ms, std::size_t prompt_bytes) {
  constexpr std::size_t kBytesOfAMs = 4, kMostMs = 600'000;
  return base_ms + static_cast<int>(std::min(prompt_bytes / kBytesOfAMs, kMostMs));
}

}  // namespace octavo::fleet
