// Recordings of decoding steps (CUDA graphs). One launch replaces hundreds of launches, which the host
// enqueues more slowly than the device runs them. A few step sizes have a recording; a step with fewer
// sequences is padded to the next size.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/execute/batch.h"
#include "kernels/device.h"

namespace octavo {

class DecodeRecordings {
 public:
  // most: maximum number of tokens and sequences in a step; 0 disables recordings.
  explicit DecodeRecordings(int most);

  // Returns the sizes that have a recording, in ascending order.
  const std::vector<int>& sizes() const { return sizes_; }

  // Returns the size to which this step is padded. It is 0, and the step runs without a recording, if the
  // step does more than decode one token per sequence, or if it is above all sizes.
  int size_of(const Batch& batch) const;

  // Runs a step of this size. The first call runs `work` directly, because this loads the kernels. The second
  // call records it, and later calls replay the recording.
  void run(Stream& stream, int size, const std::function<void()>& work);

  // Removes all recordings, because the memory that they use will be freed. No recording may be running.
  void forget();

 private:
  struct Entry {
    bool ran = false;
    std::unique_ptr<Recording> recording;
  };
  std::vector<int> sizes_;
  std::vector<Entry> entries_;  // parallel to sizes_
};

}  // namespace octavo
