// Specs of residuals.
#pragma once

#include <cstdint>
#include <string>

#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// How the two halves of a layer, F in {mixer, feed_forward}, change the residual x:
//   serial           x += post(F(pre(x))). First the mixer, then the feed-forward.
//   parallel         x += mixer(pre_1(x)) + feed_forward(pre_2(x)).
//   parallel_shared  As parallel, with one pre-norm for both.
//   post_norm        x = post(x + F(x)), as in BERT. First the mixer, then the feed-forward.
//   from_norm        x = pre(x), x += F(x), as in MiniMax. First the mixer, then the feed-forward.
enum class Residual : std::uint8_t { serial, parallel, parallel_shared, post_norm, from_norm };

// Change of the residual before a layer: share * earlier + (1 - share) * residual, where `earlier` is the
// residual before an earlier layer.
struct Blend {
  int layer = 0;
  float share = 0;
};

// Several residual streams; layers work on the first one (PredictStreamsArgs). The other streams start as
// products of the embedding, scaled to its size. At the end, their products are added to the first stream.
struct Streams {
  int count = 0;
  NormSpec norm = {};        // norm of the router's input
  bool scales_input = true;  // with LayerInputs: the layer input reads the first stream, multiplied by a
                             // vector

  struct Names {
    // '{}' is the stream's index; without '{}', one tensor contains all streams. Both are full names.
    std::string in = "altup_projections.{}";
    std::string out = "altup_unembed_projections.{}";
    std::string prefix = "altup.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

// Several residual streams. Each half of a layer reads a mixture of them, and its output is added to each
// (CollapseStreamsArgs). All streams start as the embedding.
struct HyperConnections {
  int count = 0;
  int iterations = 0;
  float eps = 0;
  float norm_eps = 0;

  int rows() const { return count * (2 + count); }  // number of rows of a half's matrix

  struct Names {
    // Prefixes of the tensors' names: for a layer's mixer, for its feed-forward, and for the end (outside of
    // the layers).
    std::string mixer = "hc_attn_";
    std::string feed_forward = "hc_ffn_";
    std::string output = "hc_head_";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
