// Size of an index of prefixes.
#pragma once

#include <cstdint>

namespace octavo::fleet {

struct IndexSize {
  std::int64_t blocks = 0;     // sum over all endpoints
  // endpoints whose KV events fill the index; the blocks of other endpoints are estimates
  std::int64_t reporting = 0;
};

}  // namespace octavo::fleet
