// Size of a prefix index, for metrics.
#pragma once

#include <cstdint>

namespace octavo::fleet {

struct IndexSize {
  std::int64_t blocks = 0;     // sum over all endpoints
  // number of endpoints whose KV cache events fill the index; the blocks of all other endpoints are estimates
  std::int64_t reporting = 0;
};

}  // namespace octavo::fleet
