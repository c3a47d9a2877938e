// Products of experts that the CPU computes, for weights in host memory. The stream copies rows to pinned
// memory, calls the CPU backend, and copies the outputs back.
#pragma once

#include <memory>

#include "kernels/cuda/device.h"
#include "kernels/ops.h"

namespace octavo::cuda {

class HostProducts {
 public:
  // Starts a CPU backend with `threads` threads. Returns an error if the processor lacks instructions.
  static Result<std::unique_ptr<HostProducts>> make(int threads);

  Backend& cpu() { return cpu_; }
  // All matrices of `args` must have a CudaWeight::host().
  void grouped_matmul(CudaStream& stream, const GroupedMatmulArgs& args);

 private:
  explicit HostProducts(Backend cpu) : cpu_(std::move(cpu)) {}

  Backend cpu_;
  GrowingBuffer pinned_;  // of one product: the products of a stream run one after the other
};

}  // namespace octavo::cuda
