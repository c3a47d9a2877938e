// What a network needs of a checkpoint, by name and shape.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/checkpoint.h"

namespace octavo {

// One tensor that must be there: a vector in f32, f16 or bf16, or a matrix or a stack of matrices in any
// usable format.
struct Slot {
  std::string name;
  std::vector<std::int64_t> shape;
  bool integers = false;  // it holds whole numbers instead, in i64 or i32
};

// Slots may name one tensor several times. Every slot has its tensor with its shape, and every tensor fills a
// slot or is ignorable: a pattern with at most one '*', at its beginning or its end. Errors: corrupt, naming
// the tensors at fault.
Result<> check_slots(const Checkpoint& checkpoint, std::span<const Slot> slots,
                     std::span<const std::string> ignorable);

}  // namespace octavo
