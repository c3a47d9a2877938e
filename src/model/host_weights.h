// Chooses the matrices that stay in host memory because the memory of the GPU does not suffice. The kernels
// of the GPU read them over PCIe, as with vLLM's --cpu-offload-gb.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "model/network.h"

namespace octavo {

struct HostWeights {
  // Number of layers, from the first one, whose experts stay in host memory (llama.cpp's --n-cpu-moe). -1: as
  // many as needed, so that the other weights take at most 80% of the free memory of the device.
  int expert_layers = 0;
  // Minimum size in bytes of further matrices in host memory: experts first, then other matrices of layers.
  std::int64_t bytes = 0;
  int ranks = 1;  // ranks on this host, each with such weights

  bool any() const { return expert_layers != 0 || bytes > 0; }
};

// bytes_of returns the size of a matrix on the device. available: free memory of the device in bytes.
std::set<const MatrixParameter*> choose_host_weights(
    Network& network, std::size_t first_layer, const HostWeights& wanted, double available,
    const std::function<double(const MatrixParameter&)>& bytes_of);

}  // namespace octavo
