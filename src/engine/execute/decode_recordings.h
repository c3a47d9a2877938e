// CUDA graphs of decoding steps. A graph replaces hundreds of kernel launches, which take longer on the
// host than the kernels take on the device. There is a graph for each of a few step sizes, and a step with
// fewer sequences is padded to the next size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/execute/batch.h"
#include "kernels/device.h"

namespace octavo {

class DecodeRecordings {
 public:
  // `most` is the maximum number of tokens and sequences in a step; 0 disables CUDA graphs.
  explicit DecodeRecordings(int most);

  const std::vector<int>& sizes() const { return sizes_; }

  // Returns the size to which the step is padded. Returns 0 if the step must run without a CUDA graph,
  // because it is too large or does more than decode one token per sequence.
  int size_of(const Batch& batch) const;

  // Runs a step of this size. The first call runs `work` directly, which loads the kernels. The second call
  // captures `work` in a CUDA graph, and later calls replay the graph.
  void run(Stream& stream, int size, const std::function<void()>& work);

  // Removes all CUDA graphs, because the memory that they use will be freed. No graph may be running.
  void forget();

  // Sets the measured device memory of one CUDA graph, in bytes.
  void measured(std::int64_t bytes_each) { bytes_each_ = bytes_each; }
  // Returns the bytes of all CUDA graphs; nullopt: not measured.
  std::optional<std::int64_t> bytes() const {
    return bytes_each_ ? std::optional(std::ssize(sizes_) * *bytes_each_) : std::nullopt;
  }

 private:
  struct Entry {
    bool ran = false;
    std::unique_ptr<Recording> recording;
  };
  std::vector<int> sizes_;
  std::vector<Entry> entries_;  // [index in sizes_]
  std::optional<std::int64_t> bytes_each_;
};

}  // namespace octavo
