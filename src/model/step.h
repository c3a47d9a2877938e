// One step of the forward pass: its inputs, and the arguments of a network's parts.
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

// One cache group's view of a step.
struct GroupBatch {
  const AttentionPlan* plan = nullptr;
  View slots;  // i64 [n]: cache slot of each token's keys and values
};

// The states of a step's sequences; empty where no layer is recurrent.
struct StateBatch {
  View memory;       // f32 [slots, CacheLayout::state_floats]
  View slots;        // i32 [sequences], as in StatePlan
  View starts;       // i32 [sequences + 1]
  View copies = {};  // i32 [n]
};

// Encoders' rows for the layers of models with cross attention.
struct CrossBatch {
  const AttentionPlan* plan = nullptr;
  std::span<const KvLayer> cache;  // one for each layer
};

// Rows of an image, which replace the embeddings of the tokens from `token` on. Rows of deep layers
// (ImageInput::deep_layers) are added to the residual after the first layers.
struct ImageRows {
  std::int64_t token = 0;
  View x;     // f32 [tokens, ImageInput::row_dim()]
  View rows;  // i32 [tokens]: 0, 1 ..
};

// Tokens [token, token + count) of a step, of one sequence, that see each other and all tokens before them.
// The tokens of an image are an example (MediaSpec::whole_images).
struct WholeSpan {
  std::int64_t token = 0;
  std::int64_t count = 0;
  std::vector<const AttentionPlan*> plans;  // not causal; one a cache group
};

// The tokens of a step, those of one sequence next to each other and ascending.
struct ForwardBatch {
  View ids = {};          // i32 [n]
  View positions;         // i32 [n]
  View axes = {};         // i32 [axes, n]: of ropes with axes; [1, n]: on all of them the same; without it,
                          // on all of them `positions`
  View token_types = {};  // i32 [n], if the model has token types
  std::span<const GroupBatch> groups;  // parallel to CacheLayout::groups
  StateBatch states = {};
  const StepAdapters* adapters = nullptr;  // null if no token has an adapter
  std::span<const ImageRows> images = {};
  std::span<const WholeSpan> wholes = {};
  CrossBatch cross = {};
  View features = {};  // for sound encoders, in place of ids: act [n, dim], output of the convolutions
  View patches = {};   // for image encoders, in place of ids: act [n, ImageInput::patch_values()]
  // With ImageInput::position_side: f32 [n, dim], added to the patches, by `positions`.
  View placed = {};
  // Output, with ImageInput::deep_layers: f32 [tokens, out_dim of each of them side by side].
  View deep = {};
};

// Inputs for the angles of a rotary embedding: rope.h.
struct Frequencies {
  View each;  // f32 [pairs]
  float scale = 1;
  bool interleaved = false;
};

// Data that all steps of a model share.
struct Turning {
  std::span<const Frequencies> frequencies;  // parallel to ModelSpec::ropes
  View temperatures = {};                    // f32 [max_model_len] or empty: ModelSpec::temperature
};

// Slot of each rope, by number: f32 [tokens, rotary_dim / 2].
struct Cosines {};
struct Sines {};

// A layer's keys and values.
struct LayerCache {
  KvLayer memory = {};
  const AttentionPlan* plan = nullptr;
  View slots = {};  // i64 [tokens]
};

// A layer's caches and states.
struct LayerMemory {
  LayerCache cache = {};    // for a layer without a cache: the slots of another
  std::size_t group = 0;    // the cache group
  LayerCache entries = {};  // Block::entries(); the slots are those of tokens
  // Cross attention: the keys and values of encoders' rows, and the rows that each sequence sees.
  KvLayer cross = {};
  const AttentionPlan* cross_plan = nullptr;
  View states = {};  // f32 [slots, Layer::state_floats]
  StatePlan state_plan = {};
};

struct CacheLayout;
// cache: parallel to CacheLayout::layers. state_floats: size of the layer's state.
LayerMemory layer_memory(const CacheLayout& layout, std::size_t layer, std::int64_t state_floats,
                         const ForwardBatch& batch, std::span<const KvLayer> cache, StepRows rows);

// Arguments of a part's run(). Outside a layer, `memory` is empty.
struct Step {
  Backend& backend;
  const ForwardBatch& batch;
  StepRows rows;  // rows of the batch: all, or those of this step
  const Slots& slots;
  ResidualSum& residual;
  Turning turning;
  Scratch scratch;
  Scratch adapter_scratch = Scratch();
  LayerMemory memory = {};
  ProcessGroup* ranks = nullptr;      // the ranks that share the layers; null: only this one
  ExpertExchange* experts = nullptr;  // the engines that share the experts; null: only this one

  std::int64_t tokens() const { return rows.count; }
  View positions() const { return batch.positions.rows(rows.first, rows.count); }
  // This step's rows of a slot, or an empty view if no part has requested the slot.
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
