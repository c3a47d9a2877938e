// Description of a network, as plain data.
//
// A family's file turns config.json into a ModelSpec; everything else follows from it: the tensors to load
// (parameters.h), the layout of the KV cache (cache_layout.h), the forward pass (decoder.h), memory and cost
// (inspect.h). Families differ by numbers, order and activations, never by code.
//
// A layer has two halves: a mixer, where tokens attend to each other, and a feed-forward, which each token
// passes alone. The kinds of both are blocks: blocks/kinds.h lists them.
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

// Factors of a layer's values.
struct LayerScales {
  float residual = 1;  // of both halves' outputs
  float mixer = 1;     // of one half's outputs, as the next two
  float second_mixer = 1;
  float feed_forward = 1;
  float mixed = 1;      // of the residual after the mixers
  float passed = 1;     // of the residual after the layer
  bool stored = false;  // `passed` is a number of the checkpoint (Names::layer_scale)
};

struct LayerSpec {
  std::string prefix = {};  // prefix of its tensors' names, after its number
  int number = -1;          // number of the layer in names; -1: its index
  std::string part = {};    // replacement of '#' in these names
  std::optional<Blend> blend = {};
  std::optional<SharedTransformer> shared = {};  // before the mixer, in serial layers
  Mixer mixer = {};
  Mixer second_mixer = {};                   // second mixer after the same norm; for serial layers
  std::optional<CrossAttention> cross = {};  // between the halves, of serial layers and of those with post_norm
  FeedForward feed_forward = {};
  // Experts that read the feed-forward's input. The output is added after the next layer (LongCat-Flash,
  // 2025).
  std::optional<Experts> shortcut = {};
  Residual residual = Residual::serial;
  NormSpec pre_norm = {};    // norm before the half
  bool mixer_normed = true;  // the mixer has pre_norm, too
  // Norm of the halves' outputs. With pre_norm and post_norm: "sandwich". A half without a norm name has no
  // norm.
  NormSpec post_norm = {};
  std::optional<float> last_offset =
      {};  // NormSpec::weight_offset of the feed-forward, if the mixer's differs
  LayerScales scales = {};

  // For families whose layers all have these kinds.
  Attention& attention() { return std::get<Attention>(mixer); }
  const Attention& attention() const { return std::get<Attention>(mixer); }
  Mlp& mlp() { return std::get<Mlp>(feed_forward); }
};

// Tensor parallelism: which part of every layer, and of the vocabulary, a process holds.
struct Shard {
  int rank = 0;
  int size = 1;
  bool whole_experts = false;  // expert parallelism: a rank has some whole experts instead of a part of each
  std::uint16_t redundant_experts = 0;  // additional slots, for replicas of experts (expert_placement.h)
  // With whole_experts: engines with separate tokens whose ranks share the experts, and this rank's engine.
  int engines = 1, engine = 0;

  int expert_ranks() const { return engines * size; }
  int expert_rank() const { return engine * size + rank; }

  // First of this rank's part of n items, and their number. Parts differ by at most one item.
  std::int64_t first(std::int64_t n) const { return n * rank / size; }
  std::int64_t count(std::int64_t n) const { return n * (rank + 1) / size - first(n); }
  // Number of hidden units of an expert that stay together: those that share a scale in MXFP4, if n is
  // large enough.
  std::int64_t together(std::int64_t n) const { return n % 32 == 0 && n / 32 >= size ? 32 : 1; }
};

// Pipeline parallelism: which layers a process holds. The first stage also has the
// embedding; the last one has the parts after the layers.
struct Stage {
  int index = 0;
  int count = 1;
  int first_layer = 0;  // as the next field, for several stages: see divide_layers
  int end_layer = 0;

  bool is_first() const { return index == 0; }
  bool is_last() const { return index == count - 1; }
};

// Rows that tokens become.
struct EmbeddingSpec {
  float scale = 1;
  bool scale_rounds = false;  // rounded to the format of the weights before use
  int learned_positions = 0;  // rows of a table [rows, dim], if any, that is added to the embeddings
  int first_position = 0;     // the row of that table for the first token
  int token_types = 0;        // rows of another, if any, by the part of the text that a token is in
  NormSpec norm = {};         // norm of the sum
};

// Inputs in place of tokens, or beside them.
struct InputSpecs {
  std::optional<ImageInput> image = {};      // an image encoder without a vocabulary
  std::optional<SoundInput> sound = {};      // a sound encoder without a vocabulary
  std::optional<SourceInput> source = {};    // an encoder of prompts
  std::optional<HiddenInput> hidden = {};    // proposes for another network
  std::optional<LayerInputs> by_layer = {};  // a separate input for each layer, beside the tokens
};

// More than one residual stream.
struct ResidualSpec {
  std::optional<Streams> streams = {};
  std::optional<HyperConnections> hyper = {};
};

struct LogitsSpec {
  bool tied = false;  // the embedding is also the output matrix
  bool bias = false;
  float scale = 1;
  float soft_cap = 0;  // limit of the logits, if not 0
};

struct ModelSpec;

// For vision and audio models, or models with cross attention to their prompts: the encoder, and the
// placeholder token of its rows. Models with cross attention have no such token.
struct MediaSpec {
  std::shared_ptr<const ModelSpec> tower = {};
  int token = -1;
  int video_token = -1;  // the same for frames of videos; -1: no videos
  // The tokens of an image see all of it, not only those before them, in layers with
  // AttentionMask::whole_images.
  bool whole_images = false;
};

struct ModelSpec {
  std::string architecture;
  int dim = 0;
  int vocab = 0;
  int max_positions = 0;  // longest supported sequence, including rope scaling
  EmbeddingSpec embedding = {};
  InputSpecs inputs = {};
  MediaSpec media = {};
  std::vector<RopeSpec> ropes;
  Temperature temperature = {};  // for the layers that use one
  ResidualSpec residual = {};
  std::vector<LayerSpec> layers;
  NormSpec final_norm;
  LogitsSpec logits = {};
  std::optional<Head> head = {};  // nullopt: the model continues texts
  // Additional outputs for each token, beside `head` (BGE-M3: Chen et al., "M3-Embedding", 2024).
  std::vector<Head> token_heads = {};
  Names names;
  std::optional<Names> other_names = {};    // some checkpoints use these instead
  std::optional<Predictor> predictor = {};  // in the same checkpoint
  Shard shard = {};                         // all numbers above are the whole network's (shard.h)
  Stage stage = {};                         // and all layers

  // `head`, followed by `token_heads`.
  std::size_t heads() const { return head ? 1 + token_heads.size() : 0; }
  const Head& head_at(std::size_t index) const { return index == 0 ? *head : token_heads[index - 1]; }
  bool has_axes() const {
    return std::ranges::any_of(ropes, [](const RopeSpec& rope) { return !rope.axes.empty(); });
  }
  bool encodes_media() const { return inputs.image || inputs.sound; }
  // Image encoders: tokens of the largest image.
  int image_tokens() const {
    return inputs.image->image_size > 0 ? inputs.image->side() * inputs.image->side()
                                        : max_positions / inputs.image->square();
  }
  // First layer of this stage.
  std::size_t first_layer() const {
    return stage.count > 1 ? static_cast<std::size_t>(stage.first_layer) : 0;
  }
  std::size_t end_layer() const {
    return stage.count > 1 ? static_cast<std::size_t>(stage.end_layer) : layers.size();
  }
  // The text attends to sound by cross attention; prompts contain no rows of sound.
  bool hears_beside() const {
    return media.tower && media.tower->inputs.sound && media.tower->inputs.sound->joined == 0;
  }
  // Layers have cross attention to the rows of an encoder of sound or of prompts.
  bool has_cross() const { return hears_beside() || (media.tower && media.tower->inputs.source); }
  // Encoders for cross attention: rows of the longest input.
  int cross_rows() const { return inputs.sound ? inputs.sound->rows : inputs.source->rows; }
  // Encoders whose rows are in prompts: the number of encoder rows that make one row of the text, the
  // projector, and its output width.
  int joined() const { return inputs.image ? inputs.image->square() : inputs.sound->joined; }
  const Projector& projector() const {
    return inputs.image ? inputs.image->projector : inputs.sound->projector;
  }
  int out_dim() const { return inputs.image ? inputs.image->out_dim : inputs.sound->out_dim; }

  // Whether its layers see all of a text at once, so that it cannot continue one.
  bool bidirectional() const {
    for (const LayerSpec& layer : layers)
      if (const auto* attention = std::get_if<Attention>(&layer.mixer); attention && !attention->mask.causal)
        return true;
    return false;
  }
};

}  // namespace octavo
