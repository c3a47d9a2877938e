// Dummy weights, to measure a network without files.
#pragma once

#include <span>

#include "weights/checkpoint.h"
#include "weights/slots.h"

namespace octavo {

// A BF16 tensor of small random numbers for each slot, equal in each run; integer slots get zeros, in I64.
// All share the bytes of the largest. Errors: resource_exhausted.
Result<Checkpoint> dummy_checkpoint(std::span<const Slot> slots);

}  // namespace octavo
