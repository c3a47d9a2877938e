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
// which must outlive it.
class Decoder {
 public:
  // group: the ranks that hold the other parts of the model. The group outlives the decoder and reports
  // failures. Ranks run the same steps.
  static Result<Decoder> make(const Model& model, const CacheLayout& layout, Backend& backend,
                              const DecoderLimits& limits, ProcessGroup* group = nullptr);

  // Runs the layers of this stage; `cache` is parallel to CacheLayout::layers. A stage after the first
  // starts from the contents of handed_on(). Leaves the final residual for heads on the device. A recorded
  // replay of the enqueued work does the same.
  void forward(const ForwardBatch& batch, std::span<const KvLayer> cache) {
    begin(batch);
    run_layers(batch, cache, 0, model_.network.layers.size());
  }
  // The same in parts: first the phases before the layers, then layers [first, end), from 0 to the last.
  // The data of the batch must not move until then.
  void begin(const ForwardBatch& batch);
  void run_layers(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t first,
                  std::size_t end);
  // The same for a layer of an image encoder, for some rows at a time and in order. The rows are those of
  // whole squares of patches. Plans cover only the sequences of these rows. If rows attend to later rows,
  // store_rows() of all rows comes first.
  void store_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                  StepRows part);
  void run_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer, StepRows part);

  // Shares the experts with other engines; before the first step. The exchange outlives the decoder.
  void share_experts(ExpertExchange& exchange) { experts_ = &exchange; }
  // In place of forward(), when other engines have tokens and this one has none.
  void assist();

  // For a network that proposes for another (InputSpecs::hidden), before each forward(). Token i gets row
  // rows[i] of the last forward() of `from`, which is the other network's decoder or this one. rows: i32
  // [n]
  void read_hidden(const Decoder& from, const View& rows);

  // f32 [tokens, dim]: of a step of this number of tokens.
  View residual(std::int64_t tokens) const { return residual_.all().rows(0, tokens); }
  // Rows between stages: the residual or, f32 [tokens, streams * dim], all residuals.
  View handed_on(std::int64_t tokens) const {
    return model_.network.residual->handed_on(workspaces_.slots()).rows(0, tokens);
  }

  // The heads read the rows of the last forward(). logits() is LogitsHead::run().
  void logits(const View& rows, const View& out, const StepAdapters* adapters = nullptr) {
    model_.network.logits->run(step(), rows, out, adapters);
  }
  // PoolHeads: call norm_rows() once, then pool() with at most limits.max_logit_rows rows in `out`.
  void norm_rows() { model_.network.pool->norm(step()); }
  void pool(const View& starts, std::size_t head, const View& out) {
    model_.network.pool->run(step(), head, starts, out);
  }
  // The rows after the final norm: act [n, dim], valid until the next step.
  View rows() { return normed_rows(step(), model_.network.ends->final_norm); }
  // ProjectHead for the squares from `first` on, in order, and for given rows, at most one step's number.
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
  ProcessGroup* group_;                // null: this is the only rank
  ExpertExchange* experts_ = nullptr;  // null: no other engine shares the experts
  RowKeeper keeper_;
  Workspaces workspaces_;
  ResidualSum residual_;
  std::int64_t tokens_ = 0;  // tokens of the last step
};

// Limits that the attention plan of a group must have room for.
AttentionLimits attention_limits(const Model& model, const LayerGroup& group, int max_tokens,
                                 int max_sequences);

}  // namespace octavo
