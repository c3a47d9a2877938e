// Weights of the CUDA backend in host memory.
#pragma once

#include "base/error.h"
#include "kernels/weight.h"

namespace octavo {

class Device;

// Moves a matrix of the CUDA backend from the device to pinned host memory. Kernels read it over PCIe, so
// results keep their bits. Returns an error if there is not enough memory.
Result<WeightPtr> cuda_move_to_host(Device& device, WeightPtr weight);

}  // namespace octavo
