// Returns the prefix cache as a tree, for inspection by users.
#pragma once

#include <cstddef>

#include "kv/block_pool.h"
#include "request/engine_stats.h"

namespace octavo {

// Returns the nodes_max nodes that have the most cached blocks, including the blocks of their descendants.
// Equal contents count once, even if they are in several cache groups. If the first blocks of a text were
// evicted, the path of the text starts at the first block that is still cached. Takes O(n log n) for n
// blocks.
PrefixTree prefix_tree(const BlockPool& pool, std::size_t nodes_max);

}  // namespace octavo
