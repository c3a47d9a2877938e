// The indexer of DeepSeek's sparse attention.
#pragma once

#include "model/norm_spec.h"

namespace octavo {

// Selects the tokens that a query sees (ChooseTokensArgs). Index keys and head weights are computed from the
// input, index queries from the latent of the queries. Only the first elements of index queries and keys are
// rotated.
struct Indexer {
  int heads = 0;  // 0: no indexer; queries see the tokens that the last layer with an indexer has selected
  int head_dim = 0;
  int chosen = 0;      // maximum number of tokens that a query sees
  int rope = -1;       // index into ModelSpec::ropes
  // if not 0, the rotated elements are the last ones in the checkpoint, and this is their number
  int rotated_end = 0;
  NormSpec norm = {};  // norm of index keys
};

}  // namespace octavo
