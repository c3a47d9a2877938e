// Interface of plugins that keep the blocks reported by endpoints, for code that saves or restores them.
#pragma once

#include "fleet/index/held_blocks.h"

namespace octavo::fleet {

class HeldBlocksOwner {
 public:
  virtual ~HeldBlocksOwner() = default;
  virtual HeldBlocks& held_blocks() = 0;
};

}  // namespace octavo::fleet
