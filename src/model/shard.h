// Checks whether a network can be split over ranks (tensor parallelism), and divides layers among pipeline
// stages.
// The blocks define how they are split. A product with one row per head or hidden unit keeps the rank's rows;
// the next product keeps the matching columns. The ranks' outputs of each mixer and each feed-forward are
// added up before they change the residual. Embedding and output matrix are split by tokens.
#pragma once

#include <vector>

#include "base/error.h"
#include "model/spec.h"

namespace octavo {

// Errors: unsupported (the message names the part of the network that cannot be split), or invalid_argument
// (the number that is not a multiple of spec.shard.size).
Result<> check_shard(const ModelSpec& spec);

// Divides the layers among the stages, so that the weights' memory (including embedding and output matrix) is
// as equal as possible. Errors: unsupported (the message names the part that does not support stages), or
// invalid_argument if there are fewer layers than stages.
Result<std::vector<Stage>> divide_layers(const ModelSpec& spec, int stages);

}  // namespace octavo
