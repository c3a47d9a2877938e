// The executor of one replica on one device: model, KV memory and sampler side by side.
#pragma once

#include <memory>
#include <vector>

#include "engine/executor.h"
#include "engine/kv_memory.h"
#include "kernels/ops.h"
#include "model/decoder.h"
#include "model/model.h"
#include "sample/sampler.h"

namespace octavo {

struct LocalExecutorOptions {
  std::int64_t blocks = 0;
  int max_tokens = 0;     // of a step
  int max_sequences = 0;  // of a step
  SamplerOptions sampler;
};

class LocalExecutor final : public Executor {
 public:
  // Allocates the KV cache and every workspace. Error: there is not enough memory.
  static Result<std::unique_ptr<LocalExecutor>> create(Backend backend, std::unique_ptr<Model> model,
                                                       CacheLayout layout,
                                                       const LocalExecutorOptions& options);

  // Of everything but weights and cache, roughly: what a device must have left beside them.
  static std::int64_t step_bytes(const Model& model, const CacheLayout& layout, int max_tokens);

  bool asynchronous() const override { return false; }
  void forward(const Batch& batch) override;
  void sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override;
  Result<std::span<const SampledToken>> collect() override;

 private:
  LocalExecutor(Backend backend, std::unique_ptr<Model> model, CacheLayout layout,
                const LocalExecutorOptions& options);
  Result<> allocate();
  Result<> sample_chunk(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows);

  LocalExecutorOptions options_;
  Backend backend_;
  std::unique_ptr<Model> model_;
  CacheLayout layout_;
  Sampler sampler_;
  KvMemory cache_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_;  // one a cache group

  // A step's inputs travel to the device as one copy: ids, positions, and the slots of each group.
  std::vector<std::byte> staging_;
  Buffer inputs_;
  std::vector<GroupBatch> groups_;
  Buffer logit_rows_;  // i32 [logit rows]
  Buffer logits_;      // f32 [logit rows, vocab]

  std::vector<SampledToken> results_;
  Result<> sampled_;  // how the last sample() went
};

}  // namespace octavo
