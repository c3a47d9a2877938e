// Description of a network as plain data.
//
// A family's file converts config.json to a ModelSpec, from which everything else is derived: the tensors to
// load (parameters.h), the layout of the KV cache (cache_layout.h), the forward pass (decoder.h), memory and
// cost (inspect.h). Families differ in numbers, order and activations, not in code.
//
// A layer has two halves: a mixer, in which tokens attend to each other, and a feed-forward, which processes
// each token separately. Both are blocks; blocks/kinds.h lists the types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/ops.h"
#include "model/blocks/kinds.h"
#include "model/heads/specs.h"
#include "model/inputs/specs.h"
#include "model/names.h"
#include "model/norm_spec.h"
#include "model/rope_spec.h"

namespace octavo {

// Factors of values in a layer.
struct LayerScales {
  float residual = 1;  // factor of the outputs of both halves
  float mixer = 1;     // factors of the outputs of one half
  float second_mixer = 1;
  float feed_forward = 1;
  float mixed = 1;      // factor of the residual after the mixers
  float passed = 1;     // factor of the residual after the layer
  bool stored = false;  // whether the checkpoint contains `passed` (Names::layer_scale)
};

struct LayerSpec {
  std::string prefix = {};  // prefix of the tensor names, after the layer's number
  int number = -1;          // layer number in the tensor names; -1: index of the layer
  std::string part = {};    // text that replaces '#' in these names
  std::optional<Blend> blend = {};
  std::optional<SharedTransformer> shared = {};  // block that runs before the mixer; only in serial layers
  Mixer mixer = {};
  Mixer second_mixer = {};  // second mixer, which reads the same normalised input; only in serial layers
  std::optional<CrossAttention> cross = {};  // block that runs between the halves; only in serial and
                                             // post_norm layers
  FeedForward feed_forward = {};
  // Experts that read the feed-forward's input. Their output is added after the next layer (LongCat-Flash,
  // 2025).
  std::optional<Experts> shortcut = {};
  Residual residual = Residual::serial;
  NormSpec pre_norm = {};    // norm before each half
  bool mixer_normed = true;  // whether the mixer has pre_norm, too
  // Norm of the halves' outputs. The combination with pre_norm is called "sandwich". A half whose norm has no
  // name has no such norm.
  NormSpec post_norm = {};
  std::optional<float> last_offset =
      {};  // NormSpec::weight_offset of the feed-forward; nullopt: equal to the mixer's
  LayerScales scales = {};

  // For families in which all layers have these types.
  Attention& attention() { return std::get<Attention>(mixer); }
  const Attention& attention() const { return std::get<Attention>(mixer); }
  Mlp& mlp() { return std::get<Mlp>(feed_forward); }
};

// Tensor parallelism: the part of every layer, and of the vocabulary, that a rank has.
struct Shard {
  int rank = 0;
  int size = 1;
  bool whole_experts = false;  // expert parallelism: whether a rank has some complete experts instead of a
                               // part of each expert
  std::uint16_t redundant_experts = 0;  // number of additional slots for replicas of experts
                                        // (expert_placement.h)
  // With whole_experts: number of engines whose ranks share the experts, and index of this engine. Each
  // engine processes different tokens.
  int engines = 1, engine = 0;

  int expert_ranks() const { return engines * size; }
  int expert_rank() const { return engine * size + rank; }

  // Returns the index of the first of this rank's n items; count() returns their number. Ranks differ by at
  // most one item.
  std::int64_t first(std::int64_t n) const { return n * rank / size; }
  std::int64_t count(std::int64_t n) const { return n * (rank + 1) / size - first(n); }
  // Returns the number of consecutive hidden units of an expert that are not separated: 32, which share a
  // scale in MXFP4, if n is large enough; otherwise 1.
  std::int64_t together(std::int64_t n) const { return n % 32 == 0 && n / 32 >= size ? 32 : 1; }
};

// Pipeline parallelism: the layers that a process has. The first stage also has the embedding; the last stage
// has the parts after the layers.
struct Stage {
  int index = 0;
  int count = 1;
  int first_layer = 0;  // range of layers [first_layer, last_layer) if there are several stages; see
                        // divide_layers
  int end_layer = 0;

  bool is_first() const { return index == 0; }
  bool is_last() const { return index == count - 1; }
};

// How the row of a token is computed.
struct EmbeddingSpec {
  float scale = 1;
  bool scale_rounds = false;  // whether the scale is rounded to the weights' format before use
  int learned_positions = 0;  // number of rows of a table [rows, dim] of positions, which are added to the
                              // embeddings; 0: no table
  int first_position = 0;     // row of this table for the first token of a sequence
  int token_types = 0;  // number of rows of the table of token types; the type of a token is the part of the
                        // text that contains it; 0: no table
  NormSpec norm = {};   // norm of the sum of embedding, position and type
};

// Inputs that replace tokens or are added to them.
struct InputSpecs {
  std::optional<ImageInput> image = {};      // image encoder without a vocabulary
  std::optional<SoundInput> sound = {};      // sound encoder without a vocabulary
  std::optional<SourceInput> source = {};    // encoder of prompts
  std::optional<HiddenInput> hidden = {};    // drafter
  std::optional<LayerInputs> by_layer = {};  // a separate input for each layer, in addition to the tokens
};

// Networks with several residual streams.
struct ResidualSpec {
  std::optional<Streams> streams = {};
  std::optional<HyperConnections> hyper = {};
};

struct LogitsSpec {
  bool tied = false;  // whether embedding and output matrix are the same matrix
  bool bias = false;
  float scale = 1;
  float soft_cap = 0;  // cap of the logits (c * tanh(x / c)); 0: no cap
};

struct ModelSpec;

// Encoder of vision and audio models, and of models with cross attention to their prompts; and the
// placeholder token for its rows. Models with cross attention have no such token.
struct MediaSpec {
  std::shared_ptr<const ModelSpec> tower = {};
  int token = -1;
  int video_token = -1;  // placeholder token for video frames; -1: no videos
  // In layers with AttentionMask::whole_images: whether a token of an image sees the complete image, not only
  // earlier tokens.
  bool whole_images = false;
};

struct ModelSpec {
  std::string architecture;
  int dim = 0;
  int vocab = 0;
  int max_positions = 0;  // length of the longest supported sequence, including rope scaling
  EmbeddingSpec embedding = {};
  InputSpecs inputs = {};
  MediaSpec media = {};
  std::vector<RopeSpec> ropes;
  Temperature temperature = {};  // temperature of the layers that use one
  ResidualSpec residual = {};
  std::vector<LayerSpec> layers;
  NormSpec final_norm;
  LogitsSpec logits = {};
  std::optional<Head> head = {};  // pooling head; nullopt: the model generates text
  // Additional heads, with an output per token (BGE-M3: Chen et al., "M3-Embedding", 2024).
  std::vector<Head> token_heads = {};
  Names names;
  std::optional<Names> other_names = {};    // alternative names, which some checkpoints use
  std::optional<Predictor> predictor = {};  // multi-token prediction layers in the same checkpoint
  Shard shard = {};  // part of this rank; all numbers above are those of the complete network (shard.h)
  Stage stage = {};  // stage of this process; `layers` contains the layers of all stages

  // Returns the number of heads: `head`, then `token_heads`.
  std::size_t heads() const { return head ? 1 + token_heads.size() : 0; }
  const Head& head_at(std::size_t index) const { return index == 0 ? *head : token_heads[index - 1]; }
  bool has_axes() const {
    return std::ranges::any_of(ropes, [](const RopeSpec& rope) { return !rope.axes.empty(); });
  }
  bool encodes_media() const { return inputs.image || inputs.sound; }
  // For image encoders: returns the number of tokens of the largest image.
  int image_tokens() const {
    return inputs.image->image_size > 0 ? inputs.image->side() * inputs.image->side()
                                        : max_positions / inputs.image->square();
  }
  std::size_t first_layer() const {
    return stage.count > 1 ? static_cast<std::size_t>(stage.first_layer) : 0;
  }
  std::size_t end_layer() const {
    return stage.count > 1 ? static_cast<std::size_t>(stage.end_layer) : layers.size();
  }
  // Returns whether layers attend to sound by cross attention; prompts then contain no sound rows.
  bool hears_beside() const {
    return media.tower && media.tower->inputs.sound && media.tower->inputs.sound->joined == 0;
  }
  // Returns whether layers have cross attention to the rows of an encoder of sound or of prompts.
  bool has_cross() const { return hears_beside() || (media.tower && media.tower->inputs.source); }
  // For encoders with cross attention: returns the number of rows of the longest input.
  int cross_rows() const { return inputs.sound ? inputs.sound->rows : inputs.source->rows; }
  // For encoders whose rows are in prompts: number of encoder rows that become one input row of the language
  // model; the projector; the width of its output.
  int joined() const { return inputs.image ? inputs.image->square() : inputs.sound->joined; }
  const Projector& projector() const {
    return inputs.image ? inputs.image->projector : inputs.sound->projector;
  }
  int out_dim() const { return inputs.image ? inputs.image->out_dim : inputs.sound->out_dim; }

  // Returns whether layers see later tokens. Such a model cannot generate text.
  bool bidirectional() const {
    for (const LayerSpec& layer : layers)
      if (const auto* attention = std::get_if<Attention>(&layer.mixer); attention && !attention->mask.causal)
        return true;
    return false;
  }
};

}  // namespace octavo
