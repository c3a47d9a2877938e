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

// One required tensor: a vector in f32, f16 or bf16, or a matrix or a stack of matrices in any usable format.
struct Slot {
  std::string name;
  std::vector<std::int64_t> shape;
  bool integers = false;  // integers instead, in i64 or i32
};

// Several slots may name one tensor. Every slot needs its tensor with its shape. Every tensor must fill a
// slot or match a pattern of ignorable names, with at most one '*', at its start or end. Errors: corrupt,
// naming the tensors.
Result<> check_slots(const Checkpoint& checkpoint, std::span<const Slot> slots,
                     std::span<const std::string> ignorable);

}  // namespace octavo
