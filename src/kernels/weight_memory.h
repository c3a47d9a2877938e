// Access to the memory of matrices of the CPU backend, to transfer them between processes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/weight.h"

namespace octavo {

// Memory of a matrix. Two matrices are equal if `format` and all bytes are equal.
struct WeightMemory {
  std::uint64_t format = 0;                  // hash that depends on program version and processor type
  std::vector<std::span<std::byte>> pieces;  // the memory; writable only while no product runs
};

// `weight` must be a matrix of the CPU backend.
WeightMemory memory_of(const Weight& weight);

}  // namespace octavo
