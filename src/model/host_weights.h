// Chooses the matrices that stay in host memory because the memory of the GPU does not suffice. The CPU
// computes with experts of the first layers, as with llama.cpp's --n-cpu-moe. The kernels of the GPU read all
// other matrices over PCIe, as with vLLM's --cpu-offload-gb.
//
// The choice is the same for all steps. CPU and GPU round differently, so a choice by the number of rows
// would make outputs depend on the batch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "model/network.h"

namespace octavo {

struct HostWeights {
  // Number of layers, from the first one, whose experts the CPU computes. -1: as many as needed, so that the
  // other weights take at most 80% of the free memory of the device.
  int expert_layers = 0;
  // Minimum size in bytes of further matrices in host memory: experts first, then other matrices of layers.
  std::int64_t bytes = 0;
  int ranks = 1;  // ranks on this host, each with such weights

  bool any() const { return expert_layers != 0 || bytes > 0; }
};

// The device that computes with a matrix in host memory.
enum class HostUse : std::uint8_t { gpu_reads, cpu_computes };
using HostMatrices = std::map<const MatrixParameter*, HostUse>;

// bytes_of returns the size of a matrix on the device. available: free memory of the device in bytes.
HostMatrices choose_host_weights(Network& network, std::size_t first_layer, const HostWeights& wanted,
                                 double available,
                                 const std::function<double(const MatrixParameter&)>& bytes_of);

// Numbers of layers with matrices in host memory. A layer can be in both numbers.
struct HostLayers {
  int gpu_reads = 0, cpu_computes = 0;
};
HostLayers host_layers(Network& network, const HostMatrices& matrices);

}  // namespace octavo
