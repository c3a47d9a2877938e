// The embeddings of the last tokens (GramInput), as a block of the first layer: the last tokens are its
// state.
#pragma once

#include <memory>

#include "model/blocks/block.h"

namespace octavo {

// `top` makes the names of tensors outside of layers.
std::unique_ptr<Block> make_grams(const GramInput& spec, const Namer& top, std::int64_t dim,
                                  std::int64_t vocab);

}  // namespace octavo
