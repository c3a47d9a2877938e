// A plugin that keeps the blocks that endpoints report, for code that saves or restores them.
#pragma once

#include "fleet/index/held_blocks.h"

namespace octavo::fleet {

class HeldBlocksOwner {
 public:
  virtual ~HeldBlocksOwner() = default;
  virtual HeldBlocks& held_blocks() = 0;
};

}  // namespace octavo::fleet
