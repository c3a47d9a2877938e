// The memory of a CPU matrix, for transfers between processes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/weight.h"

namespace octavo {

// Matrices with equal `format` and equal bytes are equal.
struct WeightMemory {
  std::uint64_t format = 0;                  // depends on program version and processor type
  std::vector<std::span<std::byte>> pieces;  // writable only while no product runs
};

// Memory of a matrix of the CPU backend.
WeightMemory memory_of(const Weight& weight);

}  // namespace octavo
