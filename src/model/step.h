// One step of the forward pass: its inputs, and the arguments of the network's parts.
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

// Rows [first, first + count) of a step.
struct StepRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Data of one cache group for a step.
struct GroupBatch {
  const AttentionPlan* plan = nullptr;
  View slots;  // i64 [n]: cache slot for the keys and values of each token
};

// States of the sequences of a step; empty if no layer is recurrent.
struct StateBatch {
  View memory;       // f32 [slots, CacheLayout::state_floats]
  View slots;        // i32 [sequences], as in StatePlan::slots
  View starts;       // i32 [sequences + 1]
  View copies = {};  // i32 [n], as in StatePlan::copies
};

// An encoder's rows, for models with cross attention.
struct CrossBatch {
  const AttentionPlan* plan = nullptr;
  std::span<const KvLayer> cache;  // keys and values of encoder rows, one KvLayer per layer
};

// Rows of an image, which replace the embeddings of the tokens from `token` on. Rows of deep layers
// (ImageInput::deep_layers) are added to the residual after the first layers.
struct ImageRows {
  std::int64_t token = 0;
  View x;     // f32 [tokens, ImageInput::row_dim()]
  View rows;  // i32 [tokens]: 0, 1 ..
};

// Tokens [token, token + count) of a step and of one sequence. They see each other and all earlier tokens,
// for example the tokens of an image (MediaSpec::whole_images).
struct WholeSpan {
  std::int64_t token = 0;
  std::int64_t count = 0;
  std::vector<const AttentionPlan*> plans;  // one plan per cache group; not causal
};

// Tokens of a step. The tokens of a sequence are consecutive and ascending.
struct ForwardBatch {
  View ids = {};          // i32 [n]
  View positions;         // i32 [n]
  View axes = {};         // i32 [axes, n], for ropes with several axes; [1, n]: equal on all axes; empty:
                          // `positions` on all axes
  View token_types = {};  // i32 [n], if the model has token types
  std::span<const GroupBatch> groups;  // parallel to CacheLayout::groups
  StateBatch states = {};
  const StepAdapters* adapters = nullptr;  // null: tokens use no adapter
  std::span<const ImageRows> images = {};
  std::span<const WholeSpan> wholes = {};
  CrossBatch cross = {};
  View features = {};  // sound encoders: replaces ids; act [n, dim], output of the convolutions
  View patches = {};   // image encoders: replaces ids; act [n, ImageInput::patch_values()]
  // With ImageInput::position_side: f32 [n, dim], learned positions to add to the patches.
  View placed = {};
  // Output, with ImageInput::deep_layers: f32 [tokens, out_dim * number of deep layers].
  View deep = {};
};

// Inputs for the angles of a rotary embedding; see rope.h.
struct Frequencies {
  View each;  // f32 [pairs], also for the other views
  float scale = 1;
  bool interleaved = false;
};

// Data that all steps of a model share.
struct Turning {
  std::span<const Frequencies> frequencies;  // parallel to ModelSpec::ropes
  View temperatures = {};  // f32 [max_model_len]: ModelSpec::temperature at each position; empty if unused
};

// Slot for the cosines of each rope, by its index: f32 [tokens, rotary_dim / 2].
struct Cosines {};
struct Sines {};

// KV cache of one layer.
struct LayerCache {
  KvLayer memory = {};
  const AttentionPlan* plan = nullptr;
  View slots = {};  // i64 [tokens]
};

// Caches and states of one layer.
struct LayerMemory {
  LayerCache cache = {};    // the layer's cache, or the cache of the layer that it reads
  std::size_t group = 0;    // index of the cache group
  LayerCache entries = {};  // compressed entries (Block::entries()); `slots` are those of the tokens
  // Cross attention: keys and values of encoder rows, and the rows that each sequence sees.
  KvLayer cross = {};
  const AttentionPlan* cross_plan = nullptr;
  View states = {};  // f32 [slots, Layer::state_floats]
  StatePlan state_plan = {};
};

struct CacheLayout;
// Returns the caches and states of a layer. cache: parallel to CacheLayout::layers. state_floats: number of
// f32 values in the layer's state.
LayerMemory layer_memory(const CacheLayout& layout, std::size_t layer, std::int64_t state_floats,
                         const ForwardBatch& batch, std::span<const KvLayer> cache, StepRows rows);

// Arguments of a part's run(). Outside of layers, `memory` is empty.
struct Step {
  Backend& backend;
  const ForwardBatch& batch;
  StepRows rows;  // rows of the batch that this call runs
  const Slots& slots;
  ResidualSum& residual;
  Turning turning;
  Scratch scratch;
  Scratch adapter_scratch = Scratch();
  LayerMemory memory = {};
  ProcessGroup* ranks = nullptr;      // ranks that share the layers; null: a single rank
  ExpertExchange* experts = nullptr;  // engines that share the experts; null: experts are not shared

  std::int64_t tokens() const { return rows.count; }
  View positions() const { return batch.positions.rows(rows.first, rows.count); }
  // Returns the rows of a slot that this step uses; empty if no part has requested the slot.
  template <class Key>
  View slot(int number = 0) const {
    const View all = slots.all<Key>(number);
    return all ? all.rows(rows.first, rows.count) : all;
  }
  // number: index into ModelSpec::ropes; -1: no rotation
  Rope rope(int number) const {
    if (number < 0) return {};
    const View cos = slot<Cosines>(number);
    return {.cos = cos,
            .sin = slot<Sines>(number),
            .rotary_dim = static_cast<int>(2 * cos.size(1)),
            .interleaved = turning.frequencies[static_cast<std::size_t>(number)].interleaved};
  }
};

}  // namespace octavo
