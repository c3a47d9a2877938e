// Executor of one replica on one device: model, KV memory and sampler.
//
// On an asynchronous device (Stream::asynchronous) steps run without a gap. The next forward pass is enqueued
// while the last step is still sampling, and the new tokens go from the sampler's memory directly to its
// inputs. Decoding steps are recorded and replayed.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dist/rank_layout.h"
#include "engine/cache/kv_memory.h"
#include "engine/execute/decode_recordings.h"
#include "engine/execute/executor.h"
#include "engine/execute/expert_balancer.h"
#include "engine/media/row_encoder.h"
#include "engine/media/source_encoder.h"
#include "kernels/ops.h"
#include "model/decoder.h"
#include "model/model.h"
#include "sample/sampler.h"
#include "sample/step_memory.h"

namespace octavo {

struct LocalExecutorOptions {
  int max_tokens = 0;     // maximum of a step
  int max_sequences = 0;  // maximum of a step
  int max_adapters = 0;   // maximum in memory; 0: adapters are disabled
  int max_adapter_rank = 0;
  std::string fingerprint = {};  // identity of the model, for KV blocks that leave the engine
  bool shared_cache = false;     // another rank's process can open the blocks' memory
  // Layers whose input read_hidden() reads; empty: the last layer's output.
  std::vector<int> kept_layers = {};
  SamplerOptions sampler = {};
  // Asynchronous devices only:
  bool asynchronous = true;  // start a step before the last one's tokens are known
  bool recorded = true;      // record and replay decoding steps
  // Groups of the ranks with the other parts of the model; null: one rank. They live longer.
  const RankGroups* ranks = nullptr;
  ExpertBalancing expert_balancing = {};
};

class LocalExecutor final : public Executor, public AdapterSlots, public MediaEncoder {
 public:
  // Allocates all workspaces, but no KV cache. Executors that run in turns may share a backend. Error: not
  // enough memory.
  static Result<std::unique_ptr<LocalExecutor>> create(std::shared_ptr<Backend> backend,
                                                       std::unique_ptr<Model> model, CacheLayout layout,
                                                       const LocalExecutorOptions& options);
  ~LocalExecutor() override { backend_.stream->synchronize(); }

  // For a device with separate memory, before allocate_cache(): runs the largest steps once with a temporary
  // cache, as in vLLM's profile run. This performs late allocations early, and lets later_bytes() know the
  // size of recordings. Errors: not enough memory; those of steps.
  Result<> rehearse();
  // Call once on all ranks, before the first step. sources: slots for sounds or prompts, for models with
  // cross attention. Errors: not enough memory; see ExpertBalancer.
  Result<> allocate_cache(std::int64_t blocks, std::int64_t state_slots, std::int64_t sources = 0);

  const Model& model() const { return *model_; }
  const Device& device() const { return *backend_.device; }
  const Backend& backend() const { return backend_; }
  // Decoder::residual of the last step.
  View residual(std::int64_t tokens) const { return decoder_->residual(tokens); }
  // Memory that a device must keep free beside the cache: the growing part of the sampler, the recordings,
  // and kernel code that is loaded at its first run. Without rehearse() it is an estimate.
  std::int64_t later_bytes() const;
  // Bytes of the layers' keys and values for one sound or prompt; 0: no cross attention.
  std::int64_t source_bytes() const { return source_encoder_ ? source_encoder_->place_bytes() : 0; }

  bool asynchronous() const override { return options_.asynchronous; }
  Result<> forward(const Batch& batch) override;
  // For a draft head: token i of the next forward() reads row rows[i] of the last step of `from`, which is
  // the target's executor or this one.
  Result<> read_hidden(const LocalExecutor& from, std::span<const std::int32_t> rows);
  // On ranks other than 0, while rank 0 samples: computes this rank's part of the logits of these tokens.
  Result<> give_logits(std::span<const std::int32_t> tokens);
  Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override;
  Result<std::span<SampledToken>> collect() override;
  bool pools() const override { return model_->spec.head.has_value(); }
  Result<std::span<const float>> pool(std::span<const std::int32_t> starts,
                                      std::span<const std::uint8_t> heads) override;
  AdapterSlots* adapters() override { return reader_ ? this : nullptr; }
  MediaEncoder* media_encoder() override {
    return model_->tower || model_->spec.has_cross() ? this : nullptr;
  }
  Result<AdapterFile> read_adapter(const std::string& path) const override { return reader_->read(path); }
  Result<> put_adapter(int place, std::span<const AdapterFile::Change> changes) override;
  void drop_adapter(int place) override;
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
  Result<> begin_media(int place, const MediaPart& part) override;
  bool advance_media(int rows) override;
  void drop_media(int place) override;

 private:
  // Addresses of a step's inputs. They depend only on the number of tokens.
  struct Inputs {
    Part<std::int32_t> ids, positions, types;
    Part<std::int32_t> axes;                                     // [3, tokens], for RoPE with axes
    std::vector<Part<std::int64_t>> slots;                       // by cache group
    Part<std::int32_t> state_slots, state_starts, state_copies;  // recurrent layers only
    Part<std::int32_t> pending_tokens, pending_rows;
    Part<std::int32_t> adapter_tokens, adapter_starts;
    Part<std::int32_t> image_rows;  // rows of the tokens of Batch::images, image after image
  };

  LocalExecutor(std::shared_ptr<Backend> backend, std::unique_ptr<Model> model, CacheLayout layout,
                const LocalExecutorOptions& options);
  Result<> allocate();
  Result<> rehearse_step(std::span<const int> tokens);
  Result<> ranks_status() const;
  static void hand_on(ProcessGroup& stages, const View& rows);
  void lay_out_inputs(std::size_t tokens, std::size_t pending);
  void pack(const Batch& batch);
  std::size_t resolve(const Batch& batch);
  // Indices of tokens or rows with an adapter, sorted by adapter.
  struct ByAdapter {
    std::vector<const Adapter*> adapters;  // adapters in use
    // [adapters + 1]: adapters[i] has numbers[starts[i]] to numbers[starts[i + 1] - 1]
    std::vector<std::int32_t> starts;
    std::vector<std::int32_t> numbers;
  };
  // places: adapter slots of items 0, 1, ...; -1: none.
  void sort_by_adapter(std::span<const std::int32_t> places, ByAdapter& sorted) const;
  void sort_tokens(const Batch& batch);
  void sort_rows(std::span<const std::int32_t> tokens);
  std::size_t sequence_of(std::int32_t token) const;
  void place_images(const Batch& batch);
  void copy_states(std::span<const Batch::StateCopy> copies);
  void plan(const Batch& batch, int size);
  struct UploadedRows {
    View rows, by_adapter, adapter_starts;  // ByAdapter::numbers and starts
  };
  Result<UploadedRows> upload_rows(std::span<const std::int32_t> rows,
                                   std::span<const std::int32_t> by_adapter = {},
                                   std::span<const std::int32_t> adapter_starts = {});
  Result<> plan_wholes(const Batch& batch);
  Result<> add_whole_plans();
  Result<View> chunk_logits(std::span<const std::int32_t> tokens);
  Result<> sample_chunk(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows);
  void take_chunk();
  void note_owners(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows);

  LocalExecutorOptions options_;
  std::shared_ptr<Backend> shared_backend_;
  Backend& backend_;
  std::unique_ptr<Model> model_;
  CacheLayout layout_;
  Sampler sampler_;
  KvMemory cache_;
  std::int64_t blocks_ = 0;
  // Mark after the last step so far. On an asynchronous device, a step may still write a block to export, or
  // read a freed block that is an import's target.
  std::atomic<Stream::Mark> steps_begun_ = 0;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<ExpertBalancer> balancer_;           // null: experts do not move
  std::vector<std::unique_ptr<AttentionPlan>> plans_;  // one per cache group
  DecodeRecordings recordings_;
  std::optional<std::int64_t> recording_bytes_;  // size of one recording, as measured by rehearse()

  std::optional<AdapterReader> reader_;          // set if max_adapters > 0
  std::vector<Adapter> adapters_;                // by slot
  std::vector<std::int32_t> sequence_adapters_;  // adapter slots of the step's sequences
  ByAdapter adapted_tokens_;                     // adapters of the step's tokens
  ByAdapter adapted_rows_;                       // adapters of the current logit rows
  std::vector<std::int32_t> item_adapters_;      // adapter slots of the items being sorted

  std::unique_ptr<RowEncoder> row_encoder_;  // models with images or sound in prompts
  std::vector<Buffer> images_;               // by slot
  std::size_t begun_image_ = 0;              // slot of the image being encoded
  std::vector<ImageRows> step_images_;
  std::vector<std::vector<std::unique_ptr<AttentionPlan>>>
      whole_plans_;                                // plans for one whole image, one per cache group
  std::vector<WholeSpan> wholes_;                  // spans of the step
  std::unique_ptr<SourceEncoder> source_encoder_;  // models with cross attention

  StepMemory inputs_memory_, row_memory_;
  Inputs inputs_;
  std::vector<GroupBatch> groups_;
  std::vector<std::int32_t> query_starts_, lengths_;  // arrays of the step, padding included
  std::vector<SequenceId> sequences_;                 // sequences of the step
  Buffer logits_;              // f32 [logit rows, vocab]; with a head [.., pooled_size]
  std::vector<float> pooled_;  // outputs of the last step

  // Last sample(): the row of each sequence's next token, by sequence; the tokens that the host has; whether
  // the later rows are still being sampled.
  std::vector<std::pair<SequenceId, std::int32_t>> owners_;
  std::vector<SampledToken> results_;
  bool sampling_ = false;
};

}  // namespace octavo
