// The forward pass of all model families, written with the operators of kernels/ops.h. The engine's executor
// calls it.
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

// Runs a model's layers and heads. make() allocates all workspaces, so a step allocates nothing. Model,
// layout and backend must outlive the decoder.
class Decoder {
 public:
  // `group` connects the ranks of tensor parallelism, and reports failures. All ranks must run the same
  // steps. The group must outlive the decoder.
  static Result<Decoder> make(const Model& model, const CacheLayout& layout, Backend& backend,
                              const DecoderLimits& limits, ProcessGroup* group = nullptr);

  // Runs the layers of this stage. `cache` is parallel to CacheLayout::layers. Stages after the first start
  // from the rows in handed_on(). The final residual stays on the device, and the heads read it. The call
  // only enqueues operators, so they may be captured in a CUDA graph.
  void forward(const ForwardBatch& batch, std::span<const KvLayer> cache) {
    begin(batch);
    run_layers(batch, cache, 0, model_.network.layers.size());
  }
  // forward() in parts: begin() runs the inputs, then run_layers() runs layers [first, end). The calls must
  // cover all layers in order. The batch's data must stay at its address until the last call.
  void begin(const ForwardBatch& batch);
  void run_layers(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t first,
                  std::size_t end);
  // For image encoders: run a layer for some of the batch's rows. Calls must cover the rows in order. The
  // rows must form complete squares of patches, and the attention plans must cover only the sequences of
  // these rows. If rows attend to later rows, store_rows() must be called for all rows first.
  void store_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                  StepRows part);
  void run_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer, StepRows part);

  // Shares the experts with other engines. Must be called before the first step. The exchange must outlive
  // the decoder.
  void share_experts(ExpertExchange& exchange) { experts_ = &exchange; }
  // Takes part in the exchange of experts if this engine has no tokens. Must be called instead of forward()
  // while other engines run a step.
  void assist();

  // For a drafter (InputSpecs::hidden): must be called before each forward(). Token i reads row rows[i] of
  // the last forward() of `from`, which is the decoder of the target model or this decoder. `rows` is i32
  // [n].
  void read_hidden(const Decoder& from, const View& rows);

  // Residual of a step, f32 [tokens, dim].
  View residual(std::int64_t tokens) const { return residual_.all().rows(0, tokens); }
  // Rows that a stage passes to the next stage: the residual or, in networks with several residual streams,
  // all streams, f32 [tokens, streams * dim].
  View handed_on(std::int64_t tokens) const {
    return model_.network.residual->handed_on(workspaces_.slots()).rows(0, tokens);
  }

  // Runs the logits head on rows of the last forward(). See LogitsHead::run().
  void logits(const View& rows, const View& out, const StepAdapters* adapters = nullptr) {
    model_.network.logits->run(step(), rows, out, adapters);
  }
  // Pooling (PoolHeads): norm_rows() must be called once, then pool() for at most limits.max_logit_rows rows
  // at a time.
  void norm_rows() { model_.network.pool->norm(step()); }
  void pool(const View& starts, std::size_t head, const View& out) {
    model_.network.pool->run(step(), head, starts, out);
  }
  // Residual after the final norm, act [n, dim]. Valid until the next step.
  View rows() { return normed_rows(step(), model_.network.ends->final_norm); }
  // project() applies the encoder's projector (ProjectHead) to the squares of patches from `first` on, in
  // order. project_rows() applies it to the rows of x, at most as many as a step may have.
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
  ProcessGroup* group_;                // null: there is only one rank
  ExpertExchange* experts_ = nullptr;  // null: the experts are not shared with other engines
  RowKeeper keeper_;
  Workspaces workspaces_;
  ResidualSum residual_;
  std::int64_t tokens_ = 0;
};

AttentionLimits attention_limits(const Model& model, const LayerGroup& group, int max_tokens,
                                 int max_sequences);

}  // namespace octavo
