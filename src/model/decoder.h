// The forward pass: one for all families, written over the operators of kernels/ops.h.
#pragma once

#include <span>
#include <vector>

#include "dist/process_group.h"
#include "model/adapter.h"
#include "model/cache_layout.h"
#include "model/inputs/hidden.h"
#include "model/model.h"
#include "model/residual/residual.h"
#include "model/step.h"
#include "model/workspaces.h"

namespace octavo {

// Holds the workspaces, all allocated here; a step allocates nothing. Refers to model, layout and backend,
// which must live longer.
class Decoder {
 public:
  // group: of the ranks that hold the other parts of the model; it lives longer, and tells of failures. Ranks
  // run the same steps.
  static Result<Decoder> make(const Model& model, const CacheLayout& layout, Backend& backend,
                              const DecoderLimits& limits, ProcessGroup* group = nullptr);

  // Runs the layers of this stage; `cache` is beside CacheLayout::layers. A stage that is not the first
  // begins with what handed_on() holds. Leaves the final residual for heads, on the device: when what it
  // enqueues was recorded, a replay does the same.
  void forward(const ForwardBatch& batch, std::span<const KvLayer> cache) {
    begin(batch);
    run_layers(batch, cache, 0, model_.network.layers.size());
  }
  // The same in parts: what comes before the layers, then layers [first, end), from 0 to the last. What the
  // batch refers to stays where it is until then.
  void begin(const ForwardBatch& batch);
  void run_layers(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t first,
                  std::size_t end);
  // The same of a layer of an encoder of images for some of the rows at a time, in order: those of whole
  // squares of patches. Plans are of these rows' sequences alone. Where rows see those behind them,
  // store_rows() of all comes first.
  void store_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                  StepRows part);
  void run_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer, StepRows part);

  // Of a network that proposes for another (ModelSpec::hidden), before each forward(): beside its token i
  // comes row rows[i] of what the last forward() of `from` has made, which is the other's decoder or this
  // one. rows: i32 [n]
  void read_hidden(const Decoder& from, const View& rows);

  // f32 [tokens, dim]: of a step of this number of tokens.
  View residual(std::int64_t tokens) const { return residual_.all().rows(0, tokens); }
  // What stages hand on: the residual or, f32 [tokens, streams * dim], all that there are.
  View handed_on(std::int64_t tokens) const {
    return model_.network.residual->handed_on(workspaces_.slots()).rows(0, tokens);
  }

  // Heads, of the last forward(). LogitsHead::run():
  void logits(const View& rows, const View& out, const StepAdapters* adapters = nullptr) {
    model_.network.logits->run(step(), rows, out, adapters);
  }
  // PoolHeads: once norm_rows(), then pool() with out.size(0) as limits.max_logit_rows says.
  void norm_rows() { model_.network.pool->norm(step()); }
  void pool(const View& starts, std::size_t head, const View& out) {
    model_.network.pool->run(step(), head, starts, out);
  }
  // The rows behind the final norm: act [n, dim], good until the next step.
  View rows() { return normed_rows(step(), model_.network.ends->final_norm); }
  // ProjectHead: of squares from `first` on, as they come; and of rows that it would take, at most a step's.
  void project(std::int64_t first, const View& out, const View& starts);
  void project_rows(const View& x, const View& out) { model_.network.project->run_rows(step(), x, out); }

 private:
  Decoder(const Model& model, const CacheLayout& layout, Backend& backend, const DecoderLimits& limits,
          Workspaces workspaces, ProcessGroup* group);

  Step step(const ForwardBatch& batch, StepRows rows);
  Step step();
  template <typename Function>
  void on_part(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer, StepRows part,
               const Function& function);

  const Model& model_;
  const CacheLayout& layout_;
  Backend& backend_;
  ProcessGroup* group_;  // null: this is the only rank
  RowKeeper keeper_;
  Workspaces workspaces_;
  ResidualSum residual_;
  std::int64_t tokens_ = 0;  // of the last step
};

// What the attention plan of a group must have room for.
AttentionLimits attention_limits(const Model& model, const LayerGroup& group, int max_tokens,
                                 int max_sequences);

}  // namespace octavo
