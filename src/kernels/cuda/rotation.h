// Rotations of vectors for 4-bit KV caches (kv_codes.h), by one warp.
#pragma once

#include "kernels/cuda/gpu.h"
#include "kernels/kv_codes.h"

namespace octavo::cuda {

// Rotates a vector in shared memory, which lanes may have written just before. All lanes see the result.
__device__ inline void rotate_in_warp(float* vector, int dim) {
  const int size = kv_rotation_size(dim);
  for (int apart = 1; apart < size; apart *= 2) {
    __syncwarp();
    for (int pair = lane(); pair < dim / 2; pair += kWarp) {
      const int i = pair / apart * 2 * apart + pair % apart;
      const float a = vector[i], b = vector[i + apart];
      vector[i] = a + b;
      vector[i + apart] = a - b;
    }
  }
  __syncwarp();
  const float factor = kv_rotation_factor(size);
  for (int i = lane(); i < dim; i += kWarp) vector[i] *= factor;
  __syncwarp();
}

}  // namespace octavo::cuda
