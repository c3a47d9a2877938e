// The forward pass of all model families, written with the operators of kernels/ops.h.
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

// Allocates all workspaces in make(), so that a step allocates nothing. Model, layout and backend must
// outlive the decoder.
class Decoder {
 public:
  // group: ranks with the other parts of the model. All ranks run the same steps. The group must outlive the
  // decoder; it reports failures.
  static Result<Decoder> make(const Model& model, const CacheLayout& layout, Backend& backend,
                              const DecoderLimits& limits, ProcessGroup* group = nullptr);

  // Runs the layers of this stage. cache: parallel to CacheLayout::layers. Stages after the first start from
  // the contents of handed_on(). The final residual stays on the device, for the heads. Replaying a recording
  // of the enqueued operators has the same effect.
  void forward(const ForwardBatch& batch, std::span<const KvLayer> cache) {
    begin(batch);
    run_layers(batch, cache, 0, model_.network.layers.size());
  }
  // The forward pass in parts: begin() runs the phases before the layers; further calls run layers [first,
  // end), in order from 0 to the last. The batch's data must stay at its address until the last call.
  void begin(const ForwardBatch& batch);
  void run_layers(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t first,
                  std::size_t end);
  // Runs a layer of an image encoder for some rows at a time, in order. The rows form complete squares of
  // patches, and attention plans cover only the sequences of these rows. If rows attend to later rows, call
  // store_rows() for all rows first.
  void store_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                  StepRows part);
  void run_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer, StepRows part);

  // Shares experts with other engines. Call it before the first step; the exchange must outlive the decoder.
  void share_experts(ExpertExchange& exchange) { experts_ = &exchange; }
  // Called instead of forward() if this engine has no tokens but other engines do.
  void assist();

  // For a drafter (InputSpecs::hidden), called before each forward(). Token i reads row rows[i] of the last
  // forward() of `from`, which is the decoder of the target network or this decoder. rows: i32 [n]
  void read_hidden(const Decoder& from, const View& rows);

  // Returns the residual of a step with `tokens` tokens, f32 [tokens, dim].
  View residual(std::int64_t tokens) const { return residual_.all().rows(0, tokens); }
  // Returns the rows that a stage passes to the next: the residual or, if there are several, all residual
  // streams, f32 [tokens, streams * dim].
  View handed_on(std::int64_t tokens) const {
    return model_.network.residual->handed_on(workspaces_.slots()).rows(0, tokens);
  }

  // Runs the logits head on rows of the last forward(). See LogitsHead::run().
  void logits(const View& rows, const View& out, const StepAdapters* adapters = nullptr) {
    model_.network.logits->run(step(), rows, out, adapters);
  }
  // Pooling (PoolHeads): call norm_rows() once, then pool() for at most limits.max_logit_rows rows at a time.
  void norm_rows() { model_.network.pool->norm(step()); }
  void pool(const View& starts, std::size_t head, const View& out) {
    model_.network.pool->run(step(), head, starts, out);
  }
  // Returns the rows after the final norm, act [n, dim]; valid until the next step.
  View rows() { return normed_rows(step(), model_.network.ends->final_norm); }
  // Projects rows (ProjectHead): either those of the squares from `first` on, in order, or the given rows, at
  // most one step's number.
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
  ProcessGroup* group_;                // null: a single rank
  ExpertExchange* experts_ = nullptr;  // null: the experts are not shared with other engines
  RowKeeper keeper_;
  Workspaces workspaces_;
  ResidualSum residual_;
  std::int64_t tokens_ = 0;  // number of tokens in the last step
};

// Returns the limits for the attention plan of a group.
AttentionLimits attention_limits(const Model& model, const LayerGroup& group, int max_tokens,
                                 int max_sequences);

}  // namespace octavo
