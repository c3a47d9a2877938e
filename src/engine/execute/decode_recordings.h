// Decoding steps as recordings (CUDA graphs): one launch instead of hundreds, which a device finishes faster
// than a host can enqueue them. There is a recording for each of a few sizes; a step of fewer sequences is
// padded to the next one.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/execute/batch.h"
#include "kernels/device.h"

namespace octavo {

class DecodeRecordings {
 public:
  // most: tokens and sequences that a step can have. 0: nothing is recorded.
  explicit DecodeRecordings(int most);

  // Ascending.
  const std::vector<int>& sizes() const { return sizes_; }

  // The size to pad this step to; 0 when it is run as it is: one that does more than decode, one token for
  // each sequence, or a larger one than all sizes.
  int size_of(const Batch& batch) const;

  // Does the work of a step of this size. The first time it is run as it is, which loads the kernels; the
  // second time it is recorded, and from then on replayed.
  void run(Stream& stream, int size, const std::function<void()>& work);

  // Memory that they know of goes: all begin anew. Nothing of them is under way.
  void forget();

 private:
  struct Entry {
    bool ran = false;
    std::unique_ptr<Recording> recording;
  };
  std::vector<int> sizes_;
  std::vector<Entry> entries_;  // beside sizes_
};

}  // namespace octavo
