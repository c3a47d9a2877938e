// Decides whether a network can be split over ranks, and which layers a stage has. The blocks define the
// split. Products with a row for each head or hidden unit keep the rank's rows; the products after them keep
// the matching columns. The ranks' outputs of each half of a layer are added up before they change the
// residual. Embedding and output matrix are split by tokens.
#pragma once

#include <vector>

#include "base/error.h"
#include "model/spec.h"

namespace octavo {

// Errors: unsupported, with the part of the network that cannot be split; invalid_argument, with the number
// that is no multiple of spec.shard.size.
Result<> check_shard(const ModelSpec& spec);

// Divides the layers among the stages, so that the memory of the weights (including embedding and output
// matrix) is as equal as possible. Errors: unsupported, with the part that cannot be in stages;
// invalid_argument if there are fewer layers than stages.
Result<std::vector<Stage>> divide_layers(const ModelSpec& spec, int stages);

}  // namespace octavo
