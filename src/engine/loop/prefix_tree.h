// The prefix cache as a tree, for inspection.
#pragma once

#include <cstddef>

#include "kv/block_pool.h"
#include "request/engine_stats.h"

namespace octavo {

// Returns the `nodes_max` nodes with the most cached blocks, descendants included. Blocks with equal
// content count once, also across cache groups. If the first blocks of a text were evicted, its path begins
// at the first remaining block. O(n log n) in the number of blocks.
PrefixTree prefix_tree(const BlockPool& pool, std::size_t nodes_max);

}  // namespace octavo
