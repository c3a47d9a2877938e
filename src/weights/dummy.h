// Random weights for --load-format dummy: measures a model's speed without its weight files.
#pragma once

#include <span>

#include "weights/checkpoint.h"
#include "weights/slots.h"

namespace octavo {

// Returns a BF16 tensor of small random numbers for each slot, or an I64 tensor of zeros if the slot needs
// integers. The numbers are the same in each run. All tensors share one buffer, which has the size of the
// largest tensor.
// Errors: resource_exhausted (not enough memory).
Result<Checkpoint> dummy_checkpoint(std::span<const Slot> slots);

}  // namespace octavo
