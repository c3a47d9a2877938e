// Access to the memory of matrices of the CPU backend, to transfer them between processes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "kernels/device.h"
#include "kernels/weight.h"

namespace octavo {

// Memory of a matrix. Two matrices are equal if `layout` and all bytes are equal.
struct WeightMemory {
  std::vector<std::int64_t> layout;          // size and format; depends on program version and processor type
  std::vector<std::span<std::byte>> pieces;  // the memory; writable only while no product runs

  std::uint64_t format() const;  // hash of `layout`
};

// Returns true if the device is the CPU backend's. Only its matrices have a WeightMemory.
bool has_weight_memory(const Device& device);

// `weight` must be a matrix of the CPU backend.
WeightMemory memory_of(const Weight& weight);

// Returns a matrix that reads these pieces, which must stay unchanged until it is destroyed. `device` must be
// of the CPU backend. Returns `corrupt` if the layout does not describe a matrix in these pieces.
Result<WeightPtr> weight_in(Device& device, const WeightMemory& memory);

}  // namespace octavo
