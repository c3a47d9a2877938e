// Blocks that the scheduler may take back from holds when sequences need them.
#pragma once

namespace octavo {

class BlockReserve {
 public:
  // Lets go of holds until at least `blocks` more blocks of the pool are free. Returns whether any block
  // became free; fewer blocks than requested may be.
  virtual bool reclaim(int blocks) = 0;
  // Returns the number of blocks that reclaim() can free.
  virtual int reclaimable() const = 0;

 protected:
  ~BlockReserve() = default;
};

}  // namespace octavo
