// Tree view of the prefix cache, for inspection.
#pragma once

#include <cstddef>

#include "kv/block_pool.h"
#include "request/engine_stats.h"

namespace octavo {

// Returns the `nodes_max` nodes of the cached content that have the most blocks, descendants included. Blocks
// with the same content count once, also across cache groups. A text whose first blocks were evicted begins
// at its first remaining block. O(n log n) in the number of blocks.
PrefixTree prefix_tree(const BlockPool& pool, std::size_t nodes_max);

}  // namespace octavo
