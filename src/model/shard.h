// Whether a network can be split over ranks, and which layers a stage has. The blocks define the split.
// Products with a row for each head or hidden unit keep the rank's rows; the products after them keep the
// matching columns. Sums over the ranks complete what each half of a layer adds to the residual. Embedding
// and output matrix are split by tokens.
#pragma once

#include <vector>

#include "base/error.h"
#include "model/spec.h"

namespace octavo {

// Errors: unsupported, naming what of the network cannot be split; invalid, naming the number that
// spec.shard.size does not divide.
Result<> check_shard(const ModelSpec& spec);

// The stages with their layers, as even as whole layers are in the memory that their weights take, embedding and
// output matrix included. Errors: unsupported, naming what of the network cannot be in stages; invalid where there
// are fewer layers than stages.
Result<std::vector<Stage>> divide_layers(const ModelSpec& spec, int stages);

}  // namespace octavo
