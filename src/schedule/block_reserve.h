// Blocks that the scheduler may take back from holds when sequences need them.
#pragma once

#include "kv/block_pool.h"

namespace octavo {

class BlockReserve {
 public:
  // Releases holds until sequences can use at least `blocks` more blocks, that is, free blocks that are not
  // lent (Scheduler::lent). Returns whether sequences can use any more blocks; there may be fewer than
  // requested.
  virtual bool reclaim(int blocks) = 0;
  // Returns the number of blocks that reclaim() can free.
  virtual int reclaimable() const = 0;
  // Returns whether reclaimable() counts this block.
  virtual bool can_free(BlockId block) const = 0;

 protected:
  ~BlockReserve() = default;
};

}  // namespace octavo
