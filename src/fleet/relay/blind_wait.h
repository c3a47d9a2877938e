// Patience with an engine whose load is not known.
#pragma once

#include <algorithm>
#include <cstddef>

namespace octavo::fleet {

// Time until such an engine counts as one that has forgotten the request. A long prompt takes longer: a token
// of about four bytes in a millisecond.
inline int blind_wait_ms(int base_ms, std::size_t prompt_bytes) {
  constexpr std::size_t kBytesOfAMs = 4, kMostMs = 600'000;
  return base_ms + static_cast<int>(std::min(prompt_bytes / kBytesOfAMs, kMostMs));
}

}  // namespace octavo::fleet
