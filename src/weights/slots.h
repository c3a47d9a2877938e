// Slots: the tensors that a network needs from a checkpoint, by name and shape. The loader checks them
// before it reads weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/checkpoint.h"

namespace octavo {

// A required tensor: a vector in f32, f16 or bf16, or a matrix or a stack of matrices in any usable
// encoding.
struct Slot {
  std::string name;
  std::vector<std::int64_t> shape;
  bool integers = false;  // the tensor must be i64 or i32 instead
};

// Checks that each slot has a tensor of its shape, and that each tensor of the checkpoint belongs to a slot
// or matches a pattern in `ignorable`. A pattern has at most one '*', at its start or end. Several slots may
// name the same tensor. Errors: corrupt; the message names the tensors.
Result<> check_slots(const Checkpoint& checkpoint, std::span<const Slot> slots,
                     std::span<const std::string> ignorable);

}  // namespace octavo
