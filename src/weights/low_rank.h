// Matrices with low-rank changes beside them in a checkpoint (Hu et al., "LoRA", 2021), named as
// torch.nn.utils.parametrize does: for NAME.weight, NAME.parametrizations.weight.original, ..0.lora_A and
// ..0.lora_B.
#pragma once

#include <cstdint>

#include "weights/checkpoint.h"

namespace octavo {

bool has_changes(const Checkpoint& checkpoint);

// Returns the checkpoint with change number `which`, times `scale`, added to each such matrix [rows, cols],
// in its format. lora_A is [changes, rank, cols] and lora_B [changes, rows, rank]; for tables lora_A is
// [changes, rows, rank] and lora_B [changes, rank, cols]. Copies all tensors. Errors: corrupt, naming the
// tensor; resource_exhausted.
Result<Checkpoint> with_change(const Checkpoint& checkpoint, std::int64_t which, float scale);

}  // namespace octavo
