// Rows of the matrices of queries, keys and values in a checkpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "model/parameters.h"

namespace octavo {

// Returns the numbers of rows of the query, key and value matrices. `matrices` is the number of tensors that
// store them.
std::vector<std::int64_t> qkv_rows(const Attention& a, std::size_t matrices);

// Returns the order of the stored rows in which all queries come first, then all keys, all values and all
// gates. The result is empty if they are stored in this order.
std::vector<RowRange> qkv_order(const Attention& a, const AttentionNames& names);

}  // namespace octavo
