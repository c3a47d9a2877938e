// Matrices with low-rank changes stored beside them in a checkpoint (Hu et al., "LoRA", 2021). The names are
// those of torch.nn.utils.parametrize: for NAME.weight, NAME.parametrizations.weight.original, ..0.lora_A and
// ..0.lora_B.
#pragma once

#include <cstdint>

#include "weights/checkpoint.h"

namespace octavo {

bool has_changes(const Checkpoint& checkpoint);

// Returns a copy of the checkpoint, with change number `which`, times `scale`, added to each matrix [rows,
// cols] that has changes. The format of the matrix remains. lora_A is [changes, rank, cols] and lora_B
// [changes, rows, rank]; for embedding tables lora_A is [changes, rows, rank] and lora_B [changes, rank,
// cols]. Errors: corrupt, with the tensor; resource_exhausted.
Result<Checkpoint> with_change(const Checkpoint& checkpoint, std::int64_t which, float scale);

}  // namespace octavo
