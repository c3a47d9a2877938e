// Interface of plugins with an index of reported blocks, for code that saves or restores the index.
#pragma once

#include "fleet/index/held_blocks.h"

namespace octavo::fleet {

class HeldBlocksOwner {
 public:
  virtual ~HeldBlocksOwner() = default;
  virtual HeldBlocks& held_blocks() = 0;
};

}  // namespace octavo::fleet
