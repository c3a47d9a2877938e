// Common code of all matrix product kernels: the rows of x and w that a thread block multiplies, and the
// addresses of the results.
#pragma once

#include "kernels/cuda/gpu.h"
#include "kernels/cuda/weight_rows.h"

namespace octavo::cuda {

// Number of columns whose products are added in one chain on tensor cores. These columns are a slice. The
// sums of slices are added in order.
constexpr std::int64_t kSlice = 1024;

// Loads columns [column, column + 8) of a row of x, which has `cols` columns and may begin at any element.
// Columns after the last one are zeros.
template <class T>
__device__ inline uint4 load_x(const T* row, std::int64_t column, std::int64_t cols, bool aligned) {
  if (aligned) return column < cols ? *reinterpret_cast<const uint4*>(row + column) : uint4{0, 0, 0, 0};
  std::uint32_t packed[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (column + i < cols)
      packed[i / 2] |= static_cast<std::uint32_t>(row[column + i].bits) << (16 * (i % 2));
  return {packed[0], packed[1], packed[2], packed[3]};
}

// Returns the index of the row of x that row `row` of y uses; rows after the last one repeat the last one.
__device__ inline std::int64_t x_index_of(const MatmulParams& p, std::int64_t row) {
  const std::int64_t x_row = row < p.m ? row : p.m - 1;
  return p.x_rows != nullptr ? p.x_rows[x_row] : x_row;
}

template <class T>
__device__ inline const T* x_row_of(const MatmulParams& p, std::int64_t row) {
  return static_cast<const T*>(p.x.data) + element_at(x_index_of(p, row), p.x.stride, 0);
}

// Returns the address of a row of w; rows after the last one repeat the last one.
__device__ inline const std::byte* w_row_of(const MatmulParams& p, std::int64_t row) {
  return row_of(p.w, row < p.rows ? row : p.rows - 1);
}

// Returns the product of the head blockIdx.z.
template <class X, class Y>
__device__ inline MatmulParams of_head(MatmulParams p) {
  const std::int64_t head = blockIdx.z;
  p.x.data = static_cast<X*>(p.x.data) + element_at(head, p.x_head, 0);
  p.w.data += element_at(head, p.rows * p.w.stride, 0);
  p.y.data = static_cast<Y*>(p.y.data) + element_at(head, p.y_head, 0);
  return p;
}

template <class Y>
__device__ inline void store(const MatmulParams& p, std::int64_t row, std::int64_t column, float value) {
  if (row >= p.m || column >= p.rows) return;
  if (p.bias != nullptr) value += p.bias[column];
  static_cast<Y*>(p.y.data)[element_at(row, p.y.stride, column)] = from_float<Y>(value);
}

// Returns true if rows of x can be read 16 bytes at a time.
template <class T>
__device__ inline bool x_aligned(const MatmulParams& p) {
  return p.cols % 8 == 0 && p.x.stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(p.x.data) % 16 == 0;
}

// Products of experts. A thread block processes rows of one expert, and finds the expert by counting tiles.
// The grid has enough thread blocks even if the last tile of every expert is partial.
constexpr int kExpertsAtOnce = 128;

struct ExpertChunk {
  MatmulParams product;
  const std::int32_t* starts;
  int experts;
  const std::byte* w[kExpertsAtOnce];
};

// Returns the size of a number; `format` must not be one of codes.
__device__ inline std::int64_t bytes_of(Format format) {
  return format == Format::f32 ? 4 : format == Format::f8 ? 1 : 2;
}

// Changes p to the product of the expert to which tile `tile` belongs, and changes `tile` to its index
// among the tiles of the expert. Returns false if the tile is beyond the last expert.
__device__ inline bool find_expert(const ExpertChunk& chunk, int tile_rows, MatmulParams& p,
                                   std::int64_t& tile) {
  for (int e = 0; e < chunk.experts; ++e) {
    const std::int64_t first = chunk.starts[e], count = chunk.starts[e + 1] - first;
    const std::int64_t tiles = (count + tile_rows - 1) / tile_rows;
    if (tile >= tiles) {
      tile -= tiles;
      continue;
    }
    p.m = count;
    p.w.data = chunk.w[e];
    if (p.bias != nullptr) p.bias += element_at(e, p.rows, 0);
    p.y.data = static_cast<std::byte*>(p.y.data) + element_at(first, p.y.stride, 0) * bytes_of(p.y.format);
    if (p.x_rows != nullptr) {
      p.x_rows += first;
    } else {
      p.x.data = static_cast<std::byte*>(p.x.data) + element_at(first, p.x.stride, 0) * bytes_of(p.x.format);
      p.x_scales.data += element_at(first, p.x_scales.groups, 0);
    }
    return true;
  }
  return false;
}

__host__ __device__ inline unsigned pieces(std::int64_t items, std::int64_t each) {
  return static_cast<unsigned>((items + each - 1) / each);
}

// Kernels for Hopper: wgmma_matmul.cu multiplies 16-bit numbers, and wgmma_codes.cu multiplies codes in
// fragment order.
void wgmma_matmul(StreamHandle stream, const MatmulParams& p);
void wgmma_codes(StreamHandle stream, const MatmulParams& p);
// Kernel for Hopper with many rows of x (wgmma_wide.cu). wide_time() returns the estimated time in the unit
// of schedule_of(), or the maximum of the type if the kernel does not support the product.
std::int64_t wide_time(const MatmulParams& p);
void wgmma_wide(StreamHandle stream, const MatmulParams& p);
// `rows_each` is the expected number of rows per expert.
void wgmma_experts(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each);
void wgmma_code_experts(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each);

// Kernels for x and w in fp8: fp8_matmul.cu, on Hopper wgmma_fp8.cu.
void fp8_matmul(StreamHandle stream, const MatmulParams& p);
void fp8_experts(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each);
void wgmma_fp8(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each);

}  // namespace octavo::cuda
