// Describes a network as plain data.
// A family's file converts config.json to a ModelSpec. Everything else is derived from it: the tensors to
// load (parameters.h), the layout of the KV cache (cache_layout.h), the forward pass (decoder.h), memory and
// cost (inspect.h). Families differ in their specs, not in their code.
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

struct LayerScales {
  float residual = 1;  // factor of the outputs of both halves
  float mixer = 1;     // factor of the mixer's output
  float second_mixer = 1;
  float feed_forward = 1;
  float mixed = 1;      // factor of the residual after the mixers
  float passed = 1;     // factor of the residual after the layer
  bool stored = false;  // `passed` is in the checkpoint (Names::layer_scale)
};

struct LayerSpec {
  std::string prefix = {};  // prefix of tensor names, after the layer's number
  int number = -1;          // number in tensor names; -1: index of the layer
  std::string part = {};    // text that replaces '#' in tensor names
  std::optional<Blend> blend = {};
  std::optional<JoinStates> join = {};
  std::optional<LoopInput> loop = {};
  std::optional<SharedTransformer> shared = {};  // runs before the mixer; only in serial layers
  Mixer mixer = {};
  Mixer second_mixer = {};  // reads the same normalised input as `mixer`; only in serial layers
  std::optional<CrossAttention> cross = {};  // runs between the halves; only in serial and post_norm layers
  FeedForward feed_forward = {};
  // Experts that read the feed-forward's input. Their output is added after the next layer (LongCat-Flash,
  // 2025).
  std::optional<Experts> shortcut = {};
  Residual residual = Residual::serial;
  SphereStep sphere = {};    // only with Residual::on_sphere
  NormSpec pre_norm = {};    // norm before each half
  bool mixer_normed = true;  // false: the mixer has no pre_norm
  // Norm of the halves' outputs. A layer that has both norms is called "sandwich". A half has no post_norm if
  // Names has no name for the tensor.
  NormSpec post_norm = {};
  // NormSpec::weight_offset of the feed-forward's post_norm; nullopt: the same as for the mixer's
  std::optional<float> last_offset = {};
  LayerScales scales = {};

  // Only for families in which all layers have these types.
  Attention& attention() { return std::get<Attention>(mixer); }
  const Attention& attention() const { return std::get<Attention>(mixer); }
  Mlp& mlp() { return std::get<Mlp>(feed_forward); }
};

// Tensor parallelism: the part of every layer, and of the vocabulary, that a rank has.
struct Shard {
  int rank = 0;
  int size = 1;
  // expert parallelism: a rank has some complete experts, instead of a part of each expert
  bool whole_experts = false;
  std::uint16_t redundant_experts = 0;  // additional slots for replicas of experts (expert_placement.h)
  // With whole_experts: number of engines whose ranks share the experts, and this engine's index. Each engine
  // processes different tokens.
  int engines = 1, engine = 0;

  int expert_ranks() const { return engines * size; }
  int expert_rank() const { return engine * size + rank; }

  // Index of this rank's first item, if n items are divided among the ranks. count() is the number of its
  // items. Ranks differ by at most one item.
  std::int64_t first(std::int64_t n) const { return n * rank / size; }
  std::int64_t count(std::int64_t n) const { return n * (rank + 1) / size - first(n); }
  // The hidden units of an expert are divided in runs of this length: 32, which share a scale in MXFP4, if
  // there are enough of them, otherwise 1.
  std::int64_t together(std::int64_t n) const { return n % 32 == 0 && n / 32 >= size ? 32 : 1; }
};

// Pipeline parallelism: the layers that a process has. The first stage also has the embedding. The last stage
// also has the parts after the layers.
struct Stage {
  int index = 0;
  int count = 1;
  // the stage has the layers [first_layer, end_layer), from divide_layers(); unused with one stage
  int first_layer = 0;
  int end_layer = 0;

  bool is_first() const { return index == 0; }
  bool is_last() const { return index == count - 1; }
};

// Defines how a token's row is computed.
struct EmbeddingSpec {
  float scale = 1;
  bool scale_rounds = false;  // the scale is rounded to the weights' format before use
  // number of learned positions, which are added to the embeddings; 0: none
  int learned_positions = 0;
  int first_position = 0;  // row of the table for the first token of a sequence
  // rows of the table of token types; the type says which part of the text contains the token; 0: no table
  int token_types = 0;
  NormSpec norm = {};  // norm of the sum of embedding, position and type
};

// Inputs that replace tokens or are added to them.
struct InputSpecs {
  std::optional<ImageInput> image = {};      // image encoder without a vocabulary
  std::optional<SoundInput> sound = {};      // audio encoder without a vocabulary
  std::optional<SourceInput> source = {};    // encoder for the prompts of encoder-decoder models
  std::optional<HiddenInput> hidden = {};    // drafter
  std::optional<GramInput> grams = {};       // embeddings of the last tokens
  std::optional<LayerInputs> by_layer = {};  // a separate input for each layer, in addition to the tokens
};

// Only for networks with several residual streams.
struct ResidualSpec {
  std::optional<Streams> streams = {};
  std::optional<HyperConnections> hyper = {};
  std::optional<AttendedSources> sources = {};
};

struct LogitsSpec {
  bool tied = false;  // embedding and output matrix are the same matrix
  bool bias = false;
  float scale = 1;
  float soft_cap = 0;  // c in c * tanh(x / c); 0: no cap
};

struct ModelSpec;

// Encoder of images, audio or (in encoder-decoder models) prompts. `token` is the placeholder token for the
// encoder's rows; models with cross attention have none.
struct MediaSpec {
  std::shared_ptr<const ModelSpec> tower = {};
  int token = -1;
  // Text of the placeholder token, if config.json lacks its id. The tokenizer's files then have it.
  std::string token_text = {};
  int video_token = -1;  // placeholder token for video frames; -1: no videos
  // In layers with AttentionMask::whole_images, a token of an image sees the complete image, not only earlier
  // tokens.
  bool whole_images = false;
  // In these layers, all tokens of a prompt see each other; output tokens see only earlier tokens.
  bool whole_prompts = false;
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
  Temperature temperature = {};
  ResidualSpec residual = {};
  std::vector<LayerSpec> layers;
  NormSpec final_norm;
  LogitsSpec logits = {};
  std::optional<Head> head = {};  // pooling head; nullopt: the model generates text
  // More heads, with an output per token (BGE-M3: Chen et al., "M3-Embedding", 2024).
  std::vector<Head> token_heads = {};
  Names names;
  std::optional<Names> other_names = {};    // names that some checkpoints use instead of `names`
  std::optional<Predictor> predictor = {};  // multi-token prediction (MTP) layers in the same checkpoint
  Shard shard = {};  // this rank's part; all numbers above describe the complete network
  Stage stage = {};  // this process's stage; `layers` contains the layers of all stages

  std::size_t heads() const { return head ? 1 + token_heads.size() : 0; }
  const Head& head_at(std::size_t index) const { return index == 0 ? *head : token_heads[index - 1]; }
  bool has_axes() const {
    return std::ranges::any_of(ropes, [](const RopeSpec& rope) { return !rope.axes.empty(); });
  }
  bool encodes_media() const { return inputs.image || inputs.sound; }
  // Only for image encoders: number of tokens of the largest image.
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
  // Returns whether layers read audio by cross attention. Prompts then contain no rows of audio.
  bool has_audio_encoder() const {
    return media.tower && media.tower->inputs.sound && media.tower->inputs.sound->joined == 0;
  }
  // Returns whether layers have cross attention to an encoder of audio or of prompts.
  bool has_cross() const { return has_audio_encoder() || (media.tower && media.tower->inputs.source); }
  // Only for encoders with cross attention: number of rows of the longest input.
  int cross_rows() const { return inputs.sound ? inputs.sound->rows : inputs.source->rows; }
  // Only for encoders whose rows are in prompts: number of encoder rows that become one row of the language
  // model, the projector, and the width of its output.
  int joined() const { return inputs.image ? inputs.image->square() : inputs.sound->joined; }
  const Projector& projector() const {
    return inputs.image ? inputs.image->projector : inputs.sound->projector;
  }
  int out_dim() const { return inputs.image ? inputs.image->out_dim : inputs.sound->out_dim; }

  // Returns whether layers see later tokens. Such a model cannot generate text.
  bool bidirectional() const {
    return std::ranges::any_of(layers, [](const LayerSpec& layer) {
      const auto* attention = std::get_if<Attention>(&layer.mixer);
      const auto* latent = std::get_if<LatentAttention>(&layer.mixer);
      return (attention && !attention->mask.causal) || (latent && !latent->causal);
    });
  }
};

}  // namespace octavo
