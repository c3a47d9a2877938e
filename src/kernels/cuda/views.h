// For kernels whose parameters are the arguments of an operator (operators/*.h): access to the elements of
// its views. check() (operators/*.cc) has already checked formats and sizes.
#pragma once

#include <utility>

#include "kernels/cuda/gpu.h"
#include "tensor/view.h"

namespace octavo::cuda {

// row: index along the first axis of a matrix. column: index in the row.
template <class T>
__device__ inline T& element(const View& matrix, std::int64_t row, std::int64_t column) {
  return static_cast<T*>(matrix.data)[element_at(row, matrix.stride[0], column)];
}
// Returns the address of a vector; null: the vector is missing.
template <class T>
__device__ inline T* items(const View& vector) {
  return static_cast<T*>(vector.data);
}

template <class Body>
void for_activation(DType type, Body&& body) {
  for_activation(format_of(type), std::forward<Body>(body));
}

// A thread processes one column of a row.
constexpr int kColumnThreads = 256;
inline dim3 column_grid(std::int64_t rows, std::int64_t columns) {
  return dim3(static_cast<unsigned>(rows),
              static_cast<unsigned>((columns + kColumnThreads - 1) / kColumnThreads));
}
__device__ inline std::int64_t column_of_thread() { return block_y() * kColumnThreads + thread(); }

// A thread block processes a row.
inline dim3 row_grid(std::int64_t rows) { return dim3(static_cast<unsigned>(rows)); }

}  // namespace octavo::cuda
