// Reads checkpoints that store several LoRA changes beside a matrix (Hu et al., "LoRA", 2021), as
// torch.nn.utils.parametrize does. The matrix NAME.weight is stored as
// NAME.parametrizations.weight.original, and its changes as NAME.parametrizations.weight.0.lora_A and
// ..0.lora_B.
#pragma once

#include <cstdint>

#include "weights/checkpoint.h"

namespace octavo {

bool has_changes(const Checkpoint& checkpoint);

// Returns a copy of the checkpoint in which each matrix [rows, cols] with changes is the original plus
// `scale` times change number `which`. The matrix keeps its number format. Shapes: lora_A is [changes, rank,
// cols] and lora_B is [changes, rows, rank]; for embedding tables lora_A is [changes, rows, rank] and lora_B
// is [changes, rank, cols]. Errors: corrupt (the message names the tensor), or resource_exhausted.
Result<Checkpoint> with_change(const Checkpoint& checkpoint, std::int64_t which, float scale);

}  // namespace octavo
