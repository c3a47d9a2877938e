// Whether a network can be split over ranks. How it is split is said by its blocks: products with a column for
// each head or hidden unit keep those of the rank, those behind them the rows' counterparts, and sums over the
// ranks complete what each half of a layer adds to the residual. Embedding and output matrix are split by
// tokens.
#pragma once

#include "base/error.h"
#include "model/spec.h"

namespace octavo {

// Errors: unsupported, naming what of the network cannot be split; invalid, naming the number that
// spec.shard.size does not divide.
Result<> check_shard(const ModelSpec& spec);

}  // namespace octavo
