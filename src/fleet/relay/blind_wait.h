// Time to wait for an engine that reports no load.
#pragma once

#include <algorithm>
#include <cstddef>

namespace octavo::fleet {

// Time until the request counts as lost at such an engine. A long prompt takes longer: 1 ms per token of
// about 4 bytes.
inline int blind_wait_ms(int base_ms, std::size_t prompt_bytes) {
  constexpr std::size_t kBytesOfAMs = 4, kMostMs = 600'000;
  return base_ms + static_cast<int>(std::min(prompt_bytes / kBytesOfAMs, kMostMs));
}

}  // namespace octavo::fleet
