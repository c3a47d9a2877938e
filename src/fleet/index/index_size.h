// The size of an index of prefixes.
#pragma once

#include <cstdint>

namespace octavo::fleet {

struct IndexSize {
  std::int64_t blocks = 0;     // sum over all endpoints
  std::int64_t reporting = 0;  // number of endpoints whose KV events fill the index; blocks of the others are
                               // estimates
};

}  // namespace octavo::fleet
