// Executor of one rank on one device. It owns the model, the KV memory and the sampler.
//
// On an asynchronous device (Stream::asynchronous), the device does not wait for the host between steps.
// The next forward pass is enqueued while the last step is still sampling, and the device copies the new
// tokens from the sampler's memory to the inputs. Decoding steps run as CUDA graphs.
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
#include "model/device_groups.h"
#include "model/model.h"

namespace octavo {

struct LocalExecutorOptions {
  int max_tokens = 0;
  int max_sequences = 0;
  int max_adapters = 0;   // maximum number of adapters in memory; 0: adapters are disabled
  int max_adapter_rank = 0;
  std::string fingerprint = {};  // identity of the model, for exported KV blocks
  bool shared_cache = false;     // whether processes of other ranks can open the memory of the blocks
  // Layers whose inputs read_hidden() reads. Empty: read_hidden() reads the output of the last layer.
  std::vector<int> kept_layers = {};
  SamplerOptions sampler = {};
  // `asynchronous` and `recorded` apply only to asynchronous devices.
  bool asynchronous = true;  // whether a step starts before the tokens of the previous step are known
  bool recorded = true;      // whether decoding steps run as CUDA graphs
  // Groups of the ranks among which the model is divided, which exchange rows in host memory. They must
  // outlive the executor. null: there is a single rank. On devices whose memory the host cannot access, the
  // executor uses DeviceGroups instead.
  const RankGroups* ranks = nullptr;
  ExpertBalancing expert_balancing = {};
  bool prompt_embeds = false;
};

class LocalExecutor final : public Executor, public BlockExchange {
 public:
  // Allocates all workspaces, but no KV cache. Several executors may share a backend if only one of them
  // runs at a time. device_ranks: the groups of options.ranks for values on the device; empty on devices
  // that share host memory. Returns an error if there is not enough memory.
  static Result<std::unique_ptr<LocalExecutor>> create(std::shared_ptr<Backend> backend,
                                                       std::unique_ptr<Model> model, CacheLayout layout,
                                                       const LocalExecutorOptions& options,
                                                       DeviceGroups device_ranks = {});
  ~LocalExecutor() override { backend_.stream->synchronize(); }

  // Runs the largest steps once with a temporary cache, like vLLM's profile run, so that later_bytes() can
  // use measured sizes. Call it before allocate_cache(), and only for a device with separate memory.
  // Returns an error if there is not enough memory, or if a step fails.
  Result<> rehearse();
  // All ranks must call it once, before the first step. `sources` is the number of slots for encoder
  // inputs, which only models with cross attention have. `kept` is memory for the blocks (KeptCache); if it
  // is empty, allocates memory. Returns an error if there is not enough memory, and the errors of
  // ExpertBalancer.
  Result<> allocate_cache(std::int64_t blocks, std::int64_t state_slots, std::int64_t sources = 0,
                          KeptBlocks kept = {});

  const Model& model() const { return *model_; }
  const Device& device() const { return *backend_.device; }
  const Backend& backend() const { return backend_; }
  View residual(std::int64_t tokens) const { return decoder_->residual(tokens); }
  // Returns the memory in bytes that must stay free in addition to the cache: for growing sampler arrays,
  // CUDA graphs, and kernel code that is loaded when it first runs. The value is an estimate if rehearse()
  // was not called.
  std::int64_t later_bytes() const;
  // Returns the bytes of keys and values of all layers for one encoder input; 0 without cross attention.
  std::int64_t source_bytes() const { return media_ ? media_->source_bytes() : 0; }

  bool asynchronous() const override { return options_.asynchronous; }
  // Returns true if the device waits for other ranks while it runs a step. Then a step does not end if a rank
  // is lost.
  bool device_waits_for_ranks() const { return device_ranks_.on_stream; }
  Result<> forward(const Batch& batch) override;
  // Called instead of forward() if engines share experts: computes this rank's experts for the other
  // engines.
  Result<> assist();
  void leave();  // last call; see ExpertExchange::leave()
  bool has_left() const { return experts_ && experts_->left(); }
  // Draft heads only: token i of the next forward() reads row rows[i] of the last step of `from`, which is
  // the executor of the target model or this executor.
  Result<> read_hidden(const LocalExecutor& from, std::span<const std::int32_t> rows);
  // Called on ranks other than 0 while rank 0 samples. Computes this rank's part of the logits for the
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
  void export_piece(KvLocation location, std::span<std::byte> out) const override {
    wait_for_begun_steps();
    cache_.export_piece(location, out);
  }
  void import_piece(KvLocation location, std::span<const std::byte> bytes) override {
    wait_for_begun_steps();
    cache_.import_piece(location, bytes);
  }
  // Waits until the device has run all steps that were enqueued. A step of this rank ends after the other
  // ranks of its stage have used their blocks. Thread-safe.
  void wait_for_begun_steps() const { backend_.stream->wait(steps_begun_); }
  const KvMemory& cache() const { return cache_; }
  NativeBlocks native_blocks() override { return cache_.native_blocks(); }
  Result<Buffer> allocate_staging(std::size_t bytes) override {
    return backend_.device->allocate_staging(bytes);
  }
  bool in_host_memory() const override { return backend_.device->shares_host_memory(); }
  Result<> release_cache() override;
  Result<> restore_cache() override;

 private:
  Result<> pool_tokens(std::uint8_t head, std::int32_t first, std::int32_t end, std::span<float> out);
  LocalExecutor(std::shared_ptr<Backend> backend, std::unique_ptr<Model> model, CacheLayout layout,
                const LocalExecutorOptions& options, DeviceGroups device_ranks);
  Result<> allocate();
  Result<> allocate_blocks(KeptBlocks kept);
  Result<> rehearse_step(std::span<const int> tokens);
  Result<> ranks_status() const;
  // Sends rows to the next stage (to_stage_behind) or receives rows from the previous stage
  // (from_stage_before). `stages` is the group of the two stages; null: does nothing. `rows` is f32 [n, dim].
  static void hand_on(ProcessGroup* stages, const View& rows);
  Result<> pack(const Batch& batch, int size, bool adapted);
  StepAdapters step_adapters(int size) const;
  StateBatch step_states() const;
  void copy_states(std::span<const Batch::StateCopy> copies);
  Result<View> chunk_logits(std::span<const std::int32_t> tokens);

  LocalExecutorOptions options_;
  std::shared_ptr<Backend> shared_backend_;
  Backend& backend_;
  // Replaces options_.ranks on devices whose memory the host cannot access.
  DeviceGroups device_ranks_;
  std::unique_ptr<Model> model_;
  CacheLayout layout_;

  KvMemory cache_;
  struct {
    std::int64_t blocks = 0, state_slots = 0;
  } cache_size_;
  // Mark of the stream after the last enqueued step. On an asynchronous device, a step may still write a
  // block that is being exported, or read a freed block that is being imported.
  std::atomic<Stream::Mark> steps_begun_ = 0;

  std::unique_ptr<Decoder> decoder_;
  std::optional<ExpertExchange> experts_;     // nullopt: no experts shared with other engines
  std::unique_ptr<ExpertBalancer> balancer_;  // null: experts do not move
  DecodeRecordings recordings_;
  LocalAdapters adapters_;
  std::unique_ptr<LocalMedia> media_;  // null: the model has no images, sounds or cross attention
  std::optional<StepInputs> inputs_;   // set by allocate()
  std::optional<StepPlans> plans_;

  LogitRows logit_rows_;
  StepSampling sampling_;
  std::vector<float> pooled_;
};

}  // namespace octavo
