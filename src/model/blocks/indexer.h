// The indexer of sparse attention.
#pragma once

#include "model/norm_spec.h"

namespace octavo {

// Selects the tokens that a query sees (ChooseTokensArgs). Keys and weights of the heads are computed from
// the input, queries from the latent of the queries. The first elements of queries and keys are rotated.
struct Indexer {
  int heads = 0;  // 0: no indexer; queries see the tokens that the last layer with an indexer has selected
  int head_dim = 0;
  int chosen = 0;      // maximum number of tokens that a query sees
  int rope = -1;       // index into ModelSpec::ropes
  NormSpec norm = {};  // norm of the keys
};

}  // namespace octavo
