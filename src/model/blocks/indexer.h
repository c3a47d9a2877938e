// The indexer of sparse attention.
#pragma once

#include "model/norm_spec.h"

namespace octavo {

// The tokens that a query sees (ChooseTokensArgs). Keys and weights of the heads are made of the input,
// queries of the queries' latent. The first numbers of queries and keys rotate.
struct Indexer {
  int heads = 0;  // 0: there are none, queries see what those of the last layer with some have chosen
  int head_dim = 0;
  int chosen = 0;      // tokens that a query sees at most
  int rope = -1;       // index into ModelSpec::ropes
  NormSpec norm = {};  // of keys
};

}  // namespace octavo
