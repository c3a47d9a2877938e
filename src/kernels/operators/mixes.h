// Operators that mix rows with weights which depend on the rows.
#pragma once

#include "tensor/view.h"

namespace octavo {

// Attention over sources (Kimi Team, "Attention Residuals", 2026). The sources of token t are x[t, 0] ..
// x[t, n - 1] and, if it exists, last[t]. The score of a source is its product with `query`, divided by
// sqrt(mean of its squares + eps). out[t] is the sum of the sources, each times the softmax of its score.
struct MixSourcesArgs {
  View x;          // f32 [tokens, n, dim]
  View last = {};  // f32 [tokens, dim]; optional
  View query;      // f32 [dim]
  float eps = 0;
  View out;  // f32 [tokens, dim]; may be `last`
};
constexpr int kMaxSources = 64;  // of x and `last` together

// Mixes two outputs of attention: y = second + sigmoid(q[t, h] * weight[h] + bias[h]) * (first - second).
struct MixHeadsArgs {
  View q;       // act [tokens, heads, dim]
  View weight;  // f32 [heads, dim]
  View bias;    // f32 [heads]
  View first;   // act [tokens, heads * dim]
  View second;  // act [tokens, heads * dim]
  View y;       // act [tokens, heads * dim]; may be `first` or `second`
};

}  // namespace octavo
