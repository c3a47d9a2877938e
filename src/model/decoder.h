// The forward pass: one for all families, written over the operators of kernels/ops.h.
#pragma once

#include <span>

#include "model/cache_layout.h"
#include "model/model.h"

namespace octavo {

// One cache group's view of a step.
struct GroupBatch {
  const AttentionPlan* plan = nullptr;
  View slots;  // i64 [n]: where each token's keys and values go
};

// The tokens of a step, those of one sequence next to each other and ascending.
struct ForwardBatch {
  View ids;                            // i32 [n]
  View positions;                      // i32 [n]
  std::span<const GroupBatch> groups;  // beside CacheLayout::groups
};

struct DecoderLimits {
  int max_tokens = 0;      // of a step
  int max_logit_rows = 0;  // of one call of logits()
};

// Bytes of a decoder's workspaces.
std::int64_t workspace_bytes(const ModelSpec& spec, DType activation, const DecoderLimits& limits);

// Holds the workspaces, all allocated here; a step allocates nothing. Refers to model, layout and backend,
// which must live longer.
class Decoder {
 public:
  static Result<Decoder> make(const Model& model, const CacheLayout& layout, Backend& backend,
                              const DecoderLimits& limits);

  // Runs all layers; `cache` has one entry for each. Leaves the final residual for logits(), on the device:
  // when what it enqueues was recorded, a replay does the same.
  void forward(const ForwardBatch& batch, std::span<const KvLayer> cache);

  // Logits of these rows of the last forward(): rows i32 [r], out f32 [r, vocab].
  void logits(const View& rows, const View& out);

 private:
  // What one half of a layer has put out and the residual has not yet taken in.
  struct Pending {
    View delta;
    Norm norm;
    float scale = 1;
  };
  // A buffer of rows.
  struct Workspace {
    Buffer buffer;
    View all;
    View rows(std::int64_t n) const { return all ? all.rows(0, n) : View{}; }
  };

  Decoder(const Model& model, const CacheLayout& layout, Backend& backend)
      : model_(model), layout_(layout), backend_(backend) {}

  Result<> allocate(const DecoderLimits& limits);
  Result<> allocate(Workspace& workspace, DType type, std::initializer_list<std::int64_t> shape);
  void run_layer(std::size_t layer, const ForwardBatch& batch, const KvLayer& cache);
  void add(const Pending& pending, const Norm& norm, const View& out);
  void attention(std::size_t layer, const View& x, const View& out, const ForwardBatch& batch,
                 const KvLayer& cache);
  void mlp(std::size_t layer, const View& x, const View& out);
  void linear(const View& x, const Linear& linear, const View& y);

  const Model& model_;
  const CacheLayout& layout_;
  Backend& backend_;
  std::int64_t tokens_ = 0;  // of the step
  Pending pending_;

  Workspace residual_;                  // f32 [tokens, dim]
  Workspace x_, delta_;                 // [tokens, dim]
  Workspace second_x_, second_delta_;   // the same, for the mlp of parallel layers
  Workspace qkv_, q_, attended_;        // [tokens, ...]
  Workspace up_, hidden_;               // [tokens, ...]
  Workspace logit_residual_, logit_x_;  // [logit rows, dim]
};

// What the attention plan of any of the layout's groups must have room for.
AttentionLimits attention_limits(const Model& model, const CacheLayout& layout, int max_tokens,
                                 int max_sequences);

}  // namespace octavo
