// The sum of the values of several ranks.
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/views.h"

namespace octavo {
namespace cuda {
namespace {

constexpr int kThreads = kColumnThreads;

// A thread adds the parts of one element.
__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(float* sum, const float* parts, std::int64_t count, int ranks, int own) {
  wait_for_kernels();
  const std::int64_t i = block_x() * kThreads + thread();
  if (i >= count) return;
  float total = own == 0 ? sum[i] : parts[i];
  for (int rank = 1; rank < ranks; ++rank) total += rank == own ? sum[i] : parts[element_at(rank, count, i)];
  sum[i] = total;
}

}  // namespace

void add_parts(StreamHandle stream, float* sum, const float* parts, std::int64_t count, int ranks, int own) {
  launch(stream, row_grid((count + kThreads - 1) / kThreads), kThreads, 0, add_parts_kernel, sum, parts,
         count, ranks, own);
}

}  // namespace cuda
}  // namespace octavo
