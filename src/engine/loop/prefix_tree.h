// The prefix cache as a tree, for people who look at it.
#pragma once

#include <cstddef>

#include "kv/block_pool.h"
#include "request/engine_stats.h"

namespace octavo {

// Of what the pool's blocks hold, the `nodes_max` nodes with the most blocks in and behind them. Blocks of
// the same content, of several cache groups or computed twice, count once; a text whose beginning has gone
// begins where it is still there. O(n log n) in the blocks.
PrefixTree prefix_tree(const BlockPool& pool, std::size_t nodes_max);

}  // namespace octavo
