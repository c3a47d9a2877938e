// One step of the forward pass: its inputs (ForwardBatch), and the argument that every part's run() receives
// (Step).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.h"
#include "model/arena.h"

namespace octavo {

class ExpertExchange;
class ProcessGroup;
class ResidualSum;
struct StepAdapters;

struct StepRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

struct GroupBatch {
  const AttentionPlan* plan = nullptr;
  View slots;  // i64 [n]: cache slot for the keys and values of each token
};

// States of the sequences. Empty if no layer is recurrent.
struct StateBatch {
  View memory;       // f32 [slots, CacheLayout::state_floats]
  View slots;        // i32 [sequences]; see StatePlan::slots
  View starts;       // i32 [sequences + 1]
  View copies = {};  // i32 [n]; see StatePlan::copies
};

// Cached rows of an encoder, only for models with cross attention.
struct CrossBatch {
  const AttentionPlan* plan = nullptr;
  std::span<const KvLayer> cache;  // keys and values of the encoder's rows, one KvLayer per layer
};

// Rows of an image. They replace the embeddings of the tokens from `token` on. Rows of deep layers
// (ImageInput::deep_layers) are added to the residual after the first layers.
struct ImageRows {
  std::int64_t token = 0;
  View x;     // f32 [tokens, ImageInput::row_dim()]
  View rows;  // i32 [tokens]: 0, 1 ..
};

// Consecutive tokens of one sequence that see each other and all earlier tokens, such as an image
// (MediaSpec::whole_images).
struct WholeSpan {
  std::int64_t token = 0;
  std::int64_t count = 0;
  std::vector<const AttentionPlan*> plans;  // one plan per cache group; not causal
};

// The tokens of a step. Tokens of a sequence are consecutive, with ascending positions.
struct ForwardBatch {
  View ids = {};          // i32 [n]
  View positions;         // i32 [n]
  // positions for ropes with several axes: i32 [axes, n], or [1, n] if they are equal on all axes; empty:
  // `positions` on all axes
  View axes = {};
  View token_types = {};               // i32 [n]; only if the model has token types
  std::span<const GroupBatch> groups;  // parallel to CacheLayout::groups
  StateBatch states = {};
  const StepAdapters* adapters = nullptr;  // null: tokens use no adapter
  std::span<const ImageRows> images = {};
  std::span<const WholeSpan> wholes = {};
  CrossBatch cross = {};
  View features = {};  // audio encoders, instead of ids: output of the convolutions, act [n, dim]
  View patches = {};   // image encoders, instead of ids: act [n, ImageInput::patch_values()]
  // With ImageInput::grid: learned positions that are added to the patches, f32 [n, dim].
  View position_embeddings = {};
  // Output of encoders with ImageInput::deep_layers: f32 [tokens, out_dim * number of deep layers].
  View deep = {};
};

// Frequencies of one rotary embedding; see rope.h.
struct Frequencies {
  View each;  // f32 [pairs]
  float scale = 1;
  bool interleaved = false;
};

struct Rotation {
  std::span<const Frequencies> frequencies;  // parallel to ModelSpec::ropes
  View temperatures = {};  // f32 [max_model_len]: factor of queries at each position; empty if unused
};

// Slots for the cosines and sines of a rope, f32 [tokens, rotary_dim / 2]. The slot's number is the index of
// the rope.
struct Cosines {};
struct Sines {};

struct LayerCache {
  KvLayer memory = {};
  const AttentionPlan* plan = nullptr;
  View slots = {};  // i64 [tokens]
};

struct LayerMemory {
  LayerCache cache = {};    // cache that the layer reads; may belong to an earlier layer
  std::size_t group = 0;    // index of the cache group
  LayerCache earlier = {};  // cache of an earlier layer (CacheLayer::earlier), without slots
  LayerCache entries = {};  // compressed entries (Block::entries()); `slots` are the slots of the tokens
  // used only by cross attention: keys and values of encoder rows, and the plan that says which rows each
  // sequence sees
  KvLayer cross = {};
  const AttentionPlan* cross_plan = nullptr;
  View states = {};  // f32 [slots, Layer::state_floats]
  StatePlan state_plan = {};
};

struct CacheLayout;
// Returns the caches and states of a layer. `cache` is parallel to CacheLayout::layers. `state_floats` is the
// number of floats in the layer's state.
LayerMemory layer_memory(const CacheLayout& layout, std::size_t layer, std::int64_t state_floats,
                         const ForwardBatch& batch, std::span<const KvLayer> cache, StepRows rows);

// Argument of every run(). `memory` is empty outside of layers.
struct Step {
  Backend& backend;
  const ForwardBatch& batch;
  StepRows rows;  // the rows of the batch that this call computes
  const Slots& slots;
  ResidualSum& residual;
  Rotation rotation;
  Scratch scratch;
  Scratch adapter_scratch = Scratch();
  LayerMemory memory = {};
  ProcessGroup* ranks = nullptr;      // ranks that share the layers; null: there is only one rank
  ExpertExchange* experts = nullptr;  // engines that share the experts; null: experts are not shared

  std::int64_t tokens() const { return rows.count; }
  View positions() const { return batch.positions.rows(rows.first, rows.count); }
  // Returns the rows of a slot that this step uses, or an empty view if no part has requested the slot.
  template <class Key>
  View slot(int number = 0) const {
    const View all = slots.all<Key>(number);
    return all ? all.rows(rows.first, rows.count) : all;
  }
  // `number` is an index into ModelSpec::ropes. -1 means no RoPE.
  Rope rope(int number) const {
    if (number < 0) return {};
    const View cos = slot<Cosines>(number);
    return {.cos = cos,
            .sin = slot<Sines>(number),
            .rotary_dim = static_cast<int>(2 * cos.size(1)),
            .interleaved = rotation.frequencies[static_cast<std::size_t>(number)].interleaved};
  }
};

}  // namespace octavo
