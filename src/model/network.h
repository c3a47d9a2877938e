// A network made from its spec: layers of blocks with all their parameters.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/shared_transformer.h"
#include "model/parameters.h"
#include "model/spec.h"

namespace octavo {

// What a layer of a network with several streams mixes them by.
struct StreamMixer {
  NormParameter norm;
  MatrixParameter router;
  VectorParameter predict, correct, scale;
};

// Of HyperConnections.
struct StreamWeights {
  VectorParameter matrix, base, scale;
};

struct Layer {
  NormParameter mixer_norm, mixer_post_norm, cross_norm, cross_post_norm, feed_forward_norm, feed_forward_post_norm,
      input_post_norm;
  std::unique_ptr<SharedTransformerBlock> shared;                          // these: null: the layer has no
  std::unique_ptr<Block> mixer, second_mixer, cross, feed_forward, shortcut, input;  // such part
  VectorParameter rest;                                                    // of LayerSpec::blend: 1 - its share
  VectorParameter mixed_scale, passed_scale;                               // where they are not 1
  StreamMixer streams;
  StreamWeights mixer_streams, feed_forward_streams;

  // Those that are there, in the order of the forward pass.
  std::vector<Block*> blocks() const;
  // Of its mixers and what it shares: at most one of them keeps something in the cache, and at most one has a
  // state.
  std::optional<CacheNeed> cache() const;
  std::optional<CacheNeed> entries() const { return mixer ? mixer->entries() : std::nullopt; }
  // Of its mixers, then of its feed-forward.
  std::int64_t state_floats() const { return mixer_state_floats() + feed_forward_state_floats(); }
  std::int64_t mixer_state_floats() const;
  std::int64_t feed_forward_state_floats() const { return feed_forward ? feed_forward->state_floats() : 0; }
};

// Of Projector.
struct ProjectorParameter {
  NormParameter norm;
  LinearParameter merger;  // of Projector::merged
  std::vector<LinearParameter> matrices;
};

struct HeadParameter {
  LinearParameter linear;
  NormParameter norm;
};

struct Network {
  MatrixParameter embedding, positions, token_types;  // positions: learned ones
  NormParameter embedding_norm;
  MatrixParameter input_table;  // these three: of LayerInputs, of all layers
  LinearParameter input_projection;
  NormParameter input_norm;
  std::vector<LinearParameter> stream_in, stream_out;  // of Streams, but for the first one
  MatrixParameter lm_head;  // not there when tied, and in models that do not continue texts
  VectorParameter logits_bias;
  std::vector<Layer> layers;
  StreamWeights output_streams;
  NormParameter final_norm;
  std::vector<std::vector<HeadParameter>> heads;  // of ModelSpec::head_at
  NormParameter token_norm, hidden_norm;  // these two and joint: of HiddenInput
  LinearParameter joint;
  const Network* other =
      nullptr;              // that it proposes for, whose matrices it uses where it has none; lives longer
  LinearParameter patches;  // of ImageInput
  MatrixParameter class_token;
  VectorParameter newline, separator;  // of ImageInput::tiled and whole_last
  ProjectorParameter projector;
  std::vector<ProjectorParameter> deep_projectors;
  std::array<LinearParameter, 2> convolutions;  // of SoundInput
  DType plain = DType::f32;                     // of the checkpoint's plain matrices, other ranks' included
  std::vector<std::string> ignorable;           // tensors that may be in a checkpoint, as in Names

  ParameterList parameters();
  const Weight& table() const { return embedding.weight ? *embedding.weight : other->table(); }
  const Weight& output() const {
    if (lm_head.weight) return *lm_head.weight;
    return other != nullptr ? other->output() : *embedding.weight;
  }
};

// The network with tensors named as under one of its Names::prefixes, without any values.
Network network_of(const ModelSpec& spec, const std::string& prefix);
inline Network network_of(const ModelSpec& spec) { return network_of(spec, spec.names.prefixes[0]); }

// The same, under the names and the prefix that the checkpoint uses, when it holds exactly these tensors.
// Errors: see check_slots.
Result<Network> checked_network(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace octavo
