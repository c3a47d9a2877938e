// Rotates queries, and results of attention, for 4-bit KV caches (kv_codes.h). A warp processes one head.
#include "kernels/cuda/key_widths.h"
#include "kernels/cuda/rotation.h"

namespace octavo::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kWarp) rotate_heads_kernel(RotateHeadsParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, whole, [kMaxKey]);
  const std::int64_t row = block_x(), column = block_y() * p.dim;
  const T* from = static_cast<const T*>(p.from.data) + element_at(row, p.from.stride, column);
  T* to = static_cast<T*>(p.to.data) + element_at(row, p.to.stride, column);
  for (int i = lane(); i < p.dim; i += kWarp) whole[i] = to_float(from[i]);
  rotate_in_warp(whole, p.dim);
  for (int i = lane(); i < p.dim; i += kWarp) to[i] = from_float<T>(whole[i]);
}

}  // namespace

void rotate_heads(StreamHandle stream, const RotateHeadsParams& p) {
  for_activation(p.from.format, [&](auto t) {
    launch(stream, dim3(static_cast<unsigned>(p.rows), static_cast<unsigned>(p.heads)), kWarp, 0,
           rotate_heads_kernel<decltype(t)>, p);
  });
}

}  // namespace octavo::cuda
