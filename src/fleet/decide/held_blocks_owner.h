// Interface of plugins that index the blocks in KV cache events. Pipeline uses it to find the index.
#pragma once

#include "fleet/index/held_blocks.h"

namespace octavo::fleet {

class HeldBlocksOwner {
 public:
  virtual ~HeldBlocksOwner() = default;
  virtual HeldBlocks& held_blocks() = 0;
};

}  // namespace octavo::fleet
