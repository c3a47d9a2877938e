// Dummy weights, for measuring a network without files.
#pragma once

#include <span>

#include "weights/checkpoint.h"
#include "weights/slots.h"

namespace octavo {

// Returns a BF16 tensor of small random numbers for each slot, the same in each run; integer slots get zeros
// in I64. All tensors share one buffer of the largest tensor's size. Returns resource_exhausted if memory
// does not suffice.
Result<Checkpoint> dummy_checkpoint(std::span<const Slot> slots);

}  // namespace octavo
