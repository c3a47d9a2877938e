// Specs for the ways in which layers change the residual.
#pragma once

#include <cstdint>
#include <string>

#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// Forms in which the two halves F of a layer (mixer and feed-forward) change the residual x.
//   serial           x += post(F(pre(x))); first the mixer, then the feed-forward
//   parallel         x += mixer(pre_1(x)) + feed_forward(pre_2(x))
//   parallel_shared  parallel, with one pre-norm for both halves
//   post_norm        x = post(x + F(x)), as in BERT; first the mixer, then the feed-forward
//   from_norm        x = pre(x), x += F(x), as in MiniMax; first the mixer, then the feed-forward
//   on_sphere        see SphereStep; first the mixer, then the feed-forward
enum class Residual : std::uint8_t { serial, parallel, parallel_shared, post_norm, from_norm, on_sphere };

// The residual x has length 1 (nGPT: Loshchilov et al., "Normalized Transformer", 2024). A half F of a layer
// moves it:
//   x = unit(unit(x) + a * (unit(F(x)) - unit(x)))
// Here, unit(v) = v / sqrt(sum of v^2 + eps). An element of `a` is |scale * s|, where s is a number in the
// checkpoint.
struct SphereStep {
  float scale = 1;
  float eps = 0;
  float out_eps = 0;  // for unit(F(x)), if F(x) is larger than in the reference

  struct Names {
    std::string mixer = "attn_alpha";
    std::string feed_forward = "mlp_alpha";
  };
};

// Changes the residual before a layer to share * earlier + (1 - share) * residual. `earlier` is the residual
// before layer `layer`.
struct Blend {
  int layer = 0;
  float share = 0;
};

// Before the first layer of a stack that runs several times, with two states (HRM: Wang et al., "Hierarchical
// Reasoning Model", 2025): the residual is normalised and kept as state `kept`, and state `added` is added to
// the residual.
struct JoinStates {
  int kept = 0;
  int added = 0;
  bool first = false;  // the residual is not normalised, and the added state is a vector of the checkpoint
  NormSpec norm = {};

  struct Names {
    std::string start = "z_L_init";  // full name
  };
};

// Before the first layer of a stack that runs several times (Dory, 2026): adds the residual before the first
// run to the residual, and scales the sum to length 1 (SphereStep).
struct LoopInput {
  bool first = false;
  float eps = 0;
};

// The input of each half of a layer is a mixture of sources (MixSourcesArgs; Kimi Team, "Attention
// Residuals", 2026). The first source is the embedding. The others are the sums of the outputs of each group
// of layers. The sum of the current group is the residual.
struct AttendedSources {
  int group = 0;  // layers in a group
  NormSpec norm = {};

  struct Names {
    std::string mixer = "attn_res";  // beginning of the names of a layer's tensors
    std::string feed_forward = "mlp_res";
    std::string output = "attnres_final.res";  // outside of layers; for the mixture after the last layer
  };
};

// Several residual streams, of which layers read and change the first one (PredictStreamsArgs; AltUp in Gemma
// 3n). At the start, the other streams are products of the embedding, scaled to its magnitude. At the end,
// products of the other streams are added to the first one.
struct Streams {
  int count = 0;
  NormSpec norm = {};  // norm of the router's input
  // with LayerInputs: the layer input reads the first stream multiplied by a vector
  bool scales_input = true;

  struct Names {
    // Full names. '{}' is the stream's index. Without '{}', one tensor contains all streams.
    std::string in = "altup_projections.{}";
    std::string out = "altup_unembed_projections.{}";
    std::string prefix = "altup.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

// Several residual streams (hyper-connections). Each half of a layer reads a mixture of the streams, and its
// output is added to all streams (CollapseStreamsArgs). Every stream starts as the embedding.
struct HyperConnections {
  int count = 0;
  int iterations = 0;
  float eps = 0;
  float norm_eps = 0;
  bool mixes = true;    // false: the streams are not mixed, and `iterations` is not used
  float magnitude = 2;  // factor of the sigmoid in the weights of a half's output (CollapseStreamsArgs)
  float post_eps = 0;   // number that is added to these weights

  // Number of rows of the matrix that computes the weights for a half of a layer.
  int rows() const { return count * (mixes ? 2 + count : 2); }

  struct Names {
    // Prefixes of tensor names: for a layer's mixer, for its feed-forward, and for the merge after the last
    // layer.
    std::string mixer = "hc_attn_";
    std::string feed_forward = "hc_ffn_";
    std::string output = "hc_head_";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
