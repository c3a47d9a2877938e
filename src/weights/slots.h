// The tensors that a network needs from a checkpoint, by name and shape.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/checkpoint.h"

namespace octavo {

// A required tensor: a vector in f32, f16 or bf16, or a matrix or a stack of matrices in any usable format.
struct Slot {
  std::string name;
  std::vector<std::int64_t> shape;
  bool integers = false;  // true: the tensor has integers (i64 or i32) instead
};

// Checks that each slot has a tensor of its shape, and that each tensor belongs to a slot or matches a
// pattern of ignorable names. A pattern has at most one '*', at its start or end. Several slots may name one
// tensor. Errors: corrupt, with the tensors.
Result<> check_slots(const Checkpoint& checkpoint, std::span<const Slot> slots,
                     std::span<const std::string> ignorable);

}  // namespace octavo
