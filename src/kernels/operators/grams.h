// Operator for embeddings of token sequences.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operators/states.h"

namespace octavo {

// One table of embeddings of sequences of `length` tokens. A sequence has the row
//   (sum over d < length of id of the token d positions earlier * vocab^d) mod rows.
struct GramTable {
  int length = 0;
  std::int64_t rows = 0;
};
constexpr int kMaxGram = 8;
constexpr int kMaxGramTables = 64;

// Computes the rows of each token in each table. Ids before the sequence's begin, and before or at a token
// `stop` that is earlier than the token, are 0.
struct GramRowsArgs {
  View ids;  // i32 [n]
  std::int64_t vocab = 0;
  std::int32_t stop = -1;  // -1: none
  std::span<const GramTable> tables;
  // f32 [slots, 1, most], in place: ids of the last `most` tokens plus 1, the latest first; 0: no token.
  // `most` is the greatest length minus 1.
  View state;
  StatePlan plan;
  View rows;  // i32 [tables, n]
};

}  // namespace octavo
