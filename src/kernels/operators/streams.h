// Operators for networks with several residual streams.
#pragma once

#include "tensor/view.h"

namespace octavo {

constexpr int kMaxStreams = 8;

// Manifold-constrained hyper-connections (Xie et al., "mHC", 2026). A token has S residual streams x[j].
// The streams are normalised together as one vector, and w is the product of `matrix` with this vector. The
// input of a layer is
//   out = sum over j, ascending, of (sigmoid(w[j] * scale[0] + base[j]) + eps) * x[j].
// The output of the layer is added to each stream (ExpandStreamsArgs) with these weights:
//   post[j] = post_scale * sigmoid(w[S + j] * scale[1] + base[S + j]) + post_eps
//   mix = the softmax of each row of the S x S numbers w[2 S ..] * scale[2] + base[2 S ..], plus eps.
//
// Then mix is made doubly stochastic. Each column is divided by its sum plus eps. Then rows and columns are
// divided in the same way, `iterations` - 1 times. Without `mix`, the streams are not mixed (HY V4, 2026).
struct CollapseStreamsArgs {
  View x;  // f32 [n, streams, dim], streams up to kMaxStreams
  // f32 [streams, streams * dim]; with post, [2 * streams, ..]; with post and mix,
  // [streams * (2 + streams), ..]
  View matrix;
  View base;   // f32 [rows of matrix]
  View scale;  // f32 [1], [2] or [3]
  float norm_eps = 0;
  float eps = 0;
  int iterations = 0;  // required with mix
  float post_scale = 2;
  float post_eps = 0;
  View out;        // f32 [n, dim]
  View post = {};  // f32 [n, streams]; optional; required with mix
  View mix = {};   // f32 [n, streams * streams]; optional
};

// Computes x[k] = post[k] * delta + sum over j, ascending, of mix[j, k] * x[j]. Without mix, the sum is x[k].
struct ExpandStreamsArgs {
  View x;      // f32 [n, streams, dim], in place
  View delta;  // act [n, dim]
  View post;   // f32 [n, streams]
  View mix = {};  // f32 [n, streams * streams]; optional
};

// Alternating updates (Baykal et al., "Alternating Updates for Efficient Transformers", 2023): a token has
// several residual streams, and layers work on the first one. Before a layer, with m = tanh(router[t]):
//   x[t, j] += sum over i, ascending, of x[t, i] * (sum over p of coefs[j * streams + i, p] * m[p])
struct PredictStreamsArgs {
  View x;       // f32 [n, streams, dim], in place; streams up to kMaxStreams
  View router;  // f32 [n, streams]
  View coefs;   // f32 [streams * streams, streams]
};

// Alternating updates, after a layer that has changed x[t, 0] from before[t]. router is computed from the
// layer's result. With m = tanh(router[t]) and change = x[t, 0] - before[t]:
//   x[t, j] += change * (1 + sum over p of coefs[j, p] * m[p]), where x[t, 0] is first reset to before[t]
//   out[t] = x[t, 0] * scale
struct CorrectStreamsArgs {
  View x;           // f32 [n, streams, dim], in place; streams up to kMaxStreams
  View before;      // f32 [n, dim]
  View router;      // f32 [n, streams]
  View coefs;       // f32 [streams, streams]
  View scale = {};  // f32 [dim]; optional
  View out;         // act [n, dim]
};

// Scales each row of x to the size of the same row of `like`: x = x * rms(like) / max(rms(x), sqrt(1e-5)).
struct MatchSizeArgs {
  View x;     // f32 [n, dim], in place
  View like;  // f32 [n, dim]
};

}  // namespace octavo
