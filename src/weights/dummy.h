// Weights that are made up, for measuring a network of which there are no files.
#pragma once

#include <span>

#include "weights/checkpoint.h"
#include "weights/slots.h"

namespace octavo {

// A tensor for each slot, in BF16: small random numbers, the same in each run. Slots of whole numbers have zeros, in
// I64. All share their bytes, which are as many as the largest takes. Errors: resource_exhausted.
Result<Checkpoint> dummy_checkpoint(std::span<const Slot> slots);

}  // namespace octavo
