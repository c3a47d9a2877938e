// What a matrix of the CPU backend is in memory, for those who move it between processes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/weight.h"

namespace octavo {

// Two matrices of the same `format` whose bytes are the same are the same matrix.
struct WeightMemory {
  std::uint64_t format = 0;                  // of this program on processors of this kind
  std::vector<std::span<std::byte>> pieces;  // who writes to them sees to it that no product runs meanwhile
};

// weight: of the CPU backend.
WeightMemory memory_of(const Weight& weight);

}  // namespace octavo
