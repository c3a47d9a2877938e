// Executor of one replica on one device: model, KV memory and sampler.
//
// On an asynchronous device (Stream::asynchronous), steps follow each other without a gap. The next forward
// pass is enqueued while the last step is still sampling; its inputs take the new tokens directly from the
// sampler's memory. Decoding steps are recorded and replayed.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "dist/rank_layout.h"
#include "engine/cache/kv_memory.h"
#include "engine/execute/decode_recordings.h"
#include "engine/execute/executor.h"
#include "engine/execute/expert_balancer.h"
#include "engine/execute/local_adapters.h"
#include "engine/execute/local_media.h"
#include "engine/execute/logit_rows.h"
#include "engine/execute/step_inputs.h"
#include "engine/execute/step_plans.h"
#include "engine/execute/step_sampling.h"
#include "kernels/ops.h"
#include "model/blocks/expert_exchange.h"
#include "model/decoder.h"
#include "model/model.h"

namespace octavo {

struct LocalExecutorOptions {
  int max_tokens = 0;     // maximum number of tokens in a step
  int max_sequences = 0;  // maximum number of sequences in a step
  int max_adapters = 0;   // maximum number of adapters in memory; 0: adapters are disabled
  int max_adapter_rank = 0;
  std::string fingerprint = {};  // identity of the model, for exported KV blocks
  bool shared_cache = false;     // whether processes of other ranks can open the memory of the blocks
  // Layers whose input read_hidden() reads. Empty: it reads the output of the last layer.
  std::vector<int> kept_layers = {};
  SamplerOptions sampler = {};
  // The following two fields apply only to asynchronous devices.
  bool asynchronous = true;  // whether a step starts before the tokens of the last one are known
  bool recorded = true;      // whether decoding steps are recorded and replayed
  // Groups of ranks that have the other parts of the model; they must outlive the executor. null: a single
  // rank.
  const RankGroups* ranks = nullptr;
  ExpertBalancing expert_balancing = {};
  bool prompt_embeds = false;  // whether prompts can be embeddings
};

class LocalExecutor final : public Executor, public BlockExchange {
 public:
  // Allocates all workspaces, but no KV cache. Several executors may share a backend if only one of them runs
  // at a time. Returns an error if memory does not suffice.
  static Result<std::unique_ptr<LocalExecutor>> create(std::shared_ptr<Backend> backend,
                                                       std::unique_ptr<Model> model, CacheLayout layout,
                                                       const LocalExecutorOptions& options);
  ~LocalExecutor() override { backend_.stream->synchronize(); }

  // Only for a device with separate memory, before allocate_cache(): runs the largest steps once with a
  // temporary cache, as in vLLM's profile run. Late allocations thus happen early, and later_bytes() knows
  // the size of recordings. Returns an error if memory does not suffice, or if a step fails.
  Result<> rehearse();
  // Called once on all ranks, before the first step. sources: number of slots for sounds or prompts, only for
  // models with cross attention. kept: memory for the blocks (KeptCache); empty: it is allocated. Returns an
  // error if memory does not suffice, and the errors of ExpertBalancer.
  Result<> allocate_cache(std::int64_t blocks, std::int64_t state_slots, std::int64_t sources = 0,
                          KeptBlocks kept = {});

  const Model& model() const { return *model_; }
  const Device& device() const { return *backend_.device; }
  const Backend& backend() const { return backend_; }
  // Returns Decoder::residual of the last step.
  View residual(std::int64_t tokens) const { return decoder_->residual(tokens); }
  // Returns the bytes of memory that must stay free in addition to the cache: for the growing part of the
  // sampler, for recordings, and for kernel code that is loaded at its first run. It is an estimate if
  // rehearse() has not run.
  std::int64_t later_bytes() const;
  // Returns the bytes of the layers' keys and values for one sound or prompt; 0 without cross attention.
  std::int64_t source_bytes() const { return media_ ? media_->source_bytes() : 0; }

  bool asynchronous() const override { return options_.asynchronous; }
  Result<> forward(const Batch& batch) override;
  // Called instead of forward() if engines share experts: computes this rank's experts for the other engines.
  Result<> assist();
  void leave();  // last call; see ExpertExchange::leave()
  bool has_left() const { return experts_ && experts_->left(); }
  // Only for a draft head: token i of the next forward() reads row rows[i] of the last step of `from`, which
  // is the executor of the engine's model or this one.
  Result<> read_hidden(const LocalExecutor& from, std::span<const std::int32_t> rows);
  // On ranks other than 0, while rank 0 samples: computes this rank's part of the logits for these
  // tokens.
  Result<> give_logits(std::span<const std::int32_t> tokens);
  Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override;
  Result<std::span<SampledToken>> collect() override;
  bool pools() const override { return model_->spec.head.has_value(); }
  Result<std::span<const float>> pool(std::span<const std::int32_t> starts,
                                      std::span<const std::uint8_t> heads) override;
  AdapterSlots* adapters() override { return adapters_.enabled() ? &adapters_ : nullptr; }
  MediaEncoder* media_encoder() override { return media_.get(); }
  BlockExchange* block_exchange() override { return this; }
  Result<BlockFormat> block_format() const override;
  void export_piece(KvPlace place, std::span<std::byte> out) const override {
    backend_.stream->wait(steps_begun_);
    cache_.export_piece(place, out);
  }
  void import_piece(KvPlace place, std::span<const std::byte> bytes) override {
    backend_.stream->wait(steps_begun_);
    cache_.import_piece(place, bytes);
  }
  const KvMemory& cache() const { return cache_; }
  NativeBlocks native_blocks() override { return cache_.native_blocks(); }
  Result<Buffer> allocate_staging(std::size_t bytes) override {
    return backend_.device->allocate_staging(bytes);
  }
  bool in_host_memory() const override { return backend_.device->shares_host_memory(); }
  Result<> release_cache() override;

 private:
  LocalExecutor(std::shared_ptr<Backend> backend, std::unique_ptr<Model> model, CacheLayout layout,
                const LocalExecutorOptions& options);
  Result<> allocate();
  Result<> rehearse_step(std::span<const int> tokens);
  Result<> ranks_status() const;
  // Sends rows, f32 [n, dim] in host memory, to the next stage, or receives them from the previous one. Null:
  // the stage does not exist.
  static void hand_on(ProcessGroup* stages, const View& rows);
  Result<> pack(const Batch& batch, int size, bool adapted);
  StepAdapters step_adapters() const;
  StateBatch step_states() const;
  void copy_states(std::span<const Batch::StateCopy> copies);
  Result<View> chunk_logits(std::span<const std::int32_t> tokens);

  LocalExecutorOptions options_;
  std::shared_ptr<Backend> shared_backend_;
  Backend& backend_;
  std::unique_ptr<Model> model_;
  CacheLayout layout_;

  KvMemory cache_;
  std::int64_t blocks_ = 0;
  // Mark of the stream after the last enqueued step. On an asynchronous device, a step may still write a
  // block that is exported, or read a freed block that an import writes.
  std::atomic<Stream::Mark> steps_begun_ = 0;

  std::unique_ptr<Decoder> decoder_;
  std::optional<ExpertExchange> experts_;     // nullopt: the experts are not shared with other engines
  std::unique_ptr<ExpertBalancer> balancer_;  // null: experts do not move
  DecodeRecordings recordings_;
  std::optional<std::int64_t> recording_bytes_;  // bytes of one recording, as measured by rehearse()
  LocalAdapters adapters_;
  std::unique_ptr<LocalMedia> media_;  // null: the model has no images, sound or cross attention
  std::optional<StepInputs> inputs_;   // set by allocate()
  std::optional<StepPlans> plans_;

  LogitRows logit_rows_;
  StepSampling sampling_;
  std::vector<float> pooled_;  // outputs of the last step
};

}  // namespace octavo
