// Adds LoRA changes to matrices of a checkpoint (Hu et al., "LoRA", 2021). The changes are in the checkpoint
// or in an adapter's file. In the checkpoint, they are stored as torch.nn.utils.parametrize does: the matrix
// NAME.weight is NAME.parametrizations.weight.original, and its changes are
// NAME.parametrizations.weight.0.lora_A and ..0.lora_B.
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

// Returns a copy of the checkpoint in which each matrix NAME.weight, for which the adapter has
// base_model.model.NAME.lora_A.weight [rank, cols] and ..lora_B.weight [rows, rank], is the original plus
// `scale` times lora_B * lora_A. NAME in the checkpoint may have the prefix "model.". Errors are those of
// with_change().
Result<Checkpoint> with_adapter(const Checkpoint& checkpoint, const Checkpoint& adapter, float scale);

}  // namespace octavo
