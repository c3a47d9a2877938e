// Matrices that lie in a checkpoint beside low-rank changes of them (Hu et al., "LoRA", 2021), as
// torch.nn.utils.parametrize names them: of NAME.weight, NAME.parametrizations.weight.original, ..0.lora_A
// and ..0.lora_B.
#pragma once

#include <cstdint>

#include "weights/checkpoint.h"

namespace octavo {

bool has_changes(const Checkpoint& checkpoint);

// The checkpoint with each such matrix, [rows, cols], and change number `which` of it, times `scale`, in its
// own format. lora_A [changes, rank, cols] and lora_B [changes, rows, rank]; of tables lora_A [changes, rows,
// rank] and lora_B [changes, rank, cols]. All tensors are copies in memory. Errors: corrupt, naming the
// tensor; resource_exhausted.
Result<Checkpoint> with_change(const Checkpoint& checkpoint, std::int64_t which, float scale);

}  // namespace octavo
