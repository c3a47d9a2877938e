// Interface of plugins that index the blocks in KV cache events. The balancer uses it to dump and restore
// the index.
#pragma once

#include "fleet/index/held_blocks.h"

namespace octavo::fleet {

class HeldBlocksOwner {
 public:
  virtual ~HeldBlocksOwner() = default;
  virtual HeldBlocks& held_blocks() = 0;
};

}  // namespace octavo::fleet
