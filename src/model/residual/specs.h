// Kinds of residuals.
#pragma once

#include <cstdint>
#include <string>

#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// How the two halves of a layer, F in {mixer, feed_forward}, act on the residual x:
//   serial           x += post(F(pre(x))), first the mixer, then the feed-forward
//   parallel         x += mixer(pre_1(x)) + feed_forward(pre_2(x))
//   parallel_shared  the same, with one pre-norm for both
//   post_norm        x = post(x + F(x)), first the mixer, then the feed-forward, as BERT has it
//   from_norm        x = pre(x), x += F(x), likewise, as MiniMax has it
enum class Residual : std::uint8_t { serial, parallel, parallel_shared, post_norm, from_norm };

// Change of the residual before a layer: the sum of `share` times its value before an earlier layer, and 1
// - share times itself.
struct Blend {
  int layer = 0;
  float share = 0;
};

// Several residuals side by side, of which layers work on the first (PredictStreamsArgs). The others begin as
// products of the embedding, are as large as it, and are added to the first at the end, likewise.
struct Streams {
  int count = 0;
  NormSpec norm = {};        // norm of the router's input
  bool scales_input = true;  // for LayerInputs: its input is the first stream times a vector

  // Names in the checkpoint.
  struct Names {
    // '{}' is the index of the stream; without it, the tensor is one stack of all. Both are whole names.
    std::string in = "altup_projections.{}";
    std::string out = "altup_unembed_projections.{}";
    std::string prefix = "altup.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

// Several residuals side by side, each half of a layer reading one mixture of them and being added to each
// (CollapseStreamsArgs). All begin as the embedding.
struct HyperConnections {
  int count = 0;
  int iterations = 0;
  float eps = 0;
  float norm_eps = 0;

  int rows() const { return count * (2 + count); }  // rows of a half's matrix

  // Names in the checkpoint.
  struct Names {
    // Prefixes of the names of its tensors: of a layer's mixer, of its feed-forward, and at the end, without
    // a layer.
    std::string mixer = "hc_attn_";
    std::string feed_forward = "hc_ffn_";
    std::string output = "hc_head_";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
