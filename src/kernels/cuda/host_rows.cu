// Copies rows between the device and pinned host memory, for products of experts that the CPU computes.
#include "kernels/cuda/gpu.h"

namespace octavo::cuda {
namespace {

constexpr int kCopyThreads = 256;

// Format of activations on the CPU, which has no f16 activations.
template <class T>
using OnHost = std::conditional_t<std::is_same_v<T, F16>, float, T>;

template <class From, class To>
__device__ void copy_row(const Rows& from, const Rows& to, std::int64_t row, std::int64_t cols) {
  const From* source = static_cast<const From*>(from.data) + element_at(row, from.stride, 0);
  To* target = static_cast<To*>(to.data) + element_at(row, to.stride, 0);
  for (std::int64_t k = thread(); k < cols; k += kCopyThreads)
    target[k] = from_float<To>(to_float(source[k]));
}

// Block i copies row i of x. With biases, the next blocks copy one bias each, if its expert has rows. The
// last block copies the indices.
template <class T>
__global__ void __launch_bounds__(kCopyThreads) send_kernel(HostRowsParams p) {
  wait_for_kernels();
  std::int64_t block = block_x();
  if (block < p.m) return copy_row<T, OnHost<T>>(p.x, p.host_x, block, p.cols);
  block -= p.m;
  if (p.bias != nullptr && block < p.experts) {
    if (p.starts[block] == p.starts[block + 1]) return;
    for (std::int64_t k = thread(); k < p.outputs; k += kCopyThreads)
      p.host_bias[element_at(block, p.outputs, k)] = p.bias[element_at(block, p.bias_stride, k)];
    return;
  }
  for (std::int64_t e = thread(); e <= p.experts; e += kCopyThreads) p.host_starts[e] = p.starts[e];
  for (std::int64_t i = thread(); p.rows != nullptr && i < p.pairs; i += kCopyThreads)
    p.host_rows[i] = p.rows[i];
}

// Rows without an expert keep their contents.
template <class T>
__global__ void __launch_bounds__(kCopyThreads) take_kernel(HostRowsParams p) {
  wait_for_kernels();
  const std::int64_t row = block_x();
  if (row < p.starts[0] || row >= p.starts[p.experts]) return;
  copy_row<OnHost<T>, T>(p.host_y, p.y, row, p.outputs);
}

dim3 blocks(std::int64_t count) { return dim3(static_cast<unsigned>(count)); }

}  // namespace

void send_rows(StreamHandle stream, const HostRowsParams& p) {
  const std::int64_t biases = p.bias != nullptr ? p.experts : 0;
  for_activation(p.x.format, [&](auto t) {
    launch(stream, blocks(p.m + biases + 1), kCopyThreads, 0, send_kernel<decltype(t)>, p);
  });
}

void take_rows(StreamHandle stream, const HostRowsParams& p) {
  for_activation(p.y.format, [&](auto t) {
    launch(stream, blocks(p.pairs), kCopyThreads, 0, take_kernel<decltype(t)>, p);
  });
}

}  // namespace octavo::cuda
