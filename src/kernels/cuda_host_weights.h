// Weights of the CUDA backend in host memory.
#pragma once

#include "base/error.h"
#include "kernels/weight.h"

namespace octavo {

class Device;
struct Backend;

// Moves a matrix of the CUDA backend from the device to pinned host memory. Kernels read it over PCIe, so
// results keep their bits. Returns an error if there is not enough memory.
Result<WeightPtr> cuda_move_to_host(Device& device, WeightPtr weight);

// Returns the CPU backend that computes products for this GPU. The first call starts its threads (0: one for
// each processor except one, on which the engine's thread waits for the GPU). Returns an error if the
// processor lacks instructions.
Result<Backend*> cuda_host_backend(Device& device, int threads);

// Returns a matrix for grouped_matmul on the GPU's stream. `weight` is a matrix of cuda_host_backend(), which
// computes the product. `activation`: format of the activations on the GPU. Results differ from the GPU's,
// because CPU and GPU add in different orders, and the CPU rounds activations for quantised matrices.
WeightPtr cuda_compute_on_host(WeightPtr weight, DType activation);

}  // namespace octavo
