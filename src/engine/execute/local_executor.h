// The executor of one replica on one device: model, KV memory and sampler side by side.
//
// On a device that works by itself (Stream::asynchronous) steps follow each other without a gap: the next
// forward pass is enqueued while the last is still sampling, and tokens that only the device knows yet go
// from the sampler's memory straight to the next step's inputs. Decoding is recorded and replayed.
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
  int max_tokens = 0;     // of a step
  int max_sequences = 0;  // of a step
  int max_adapters = 0;   // in memory at a time; 0: none at all
  int max_adapter_rank = 0;
  std::string fingerprint = {};       // of the model, for KV blocks that leave the engine
  bool shared_cache = false;          // blocks are in memory that another rank's process can open
  std::vector<int> kept_layers = {};  // whose input read_hidden() takes; none: the last one's output
  SamplerOptions sampler = {};
  // For devices that work by themselves:
  bool asynchronous = true;  // a step begins before the last one's tokens are known
  bool recorded = true;      // decoding steps are recorded and replayed
  // Of the ranks that hold the other parts of the model; null: there are none. They live longer.
  const RankGroups* ranks = nullptr;
  ExpertBalancing expert_balancing = {};
};

class LocalExecutor final : public Executor, public AdapterSlots, public MediaEncoder {
 public:
  // Allocates every workspace, but no KV cache. Executors that take turns may share a backend. Error: there
  // is not enough memory.
  static Result<std::unique_ptr<LocalExecutor>> create(std::shared_ptr<Backend> backend,
                                                       std::unique_ptr<Model> model, CacheLayout layout,
                                                       const LocalExecutorOptions& options);
  ~LocalExecutor() override { backend_.stream->synchronize(); }

  // Of a device with memory of its own, before allocate_cache(): runs the largest steps once, with a cache of
  // their own that goes again (as vLLM's profile run). What is otherwise allocated late is there then, and
  // later_bytes() knows what recordings take. Errors: there is not enough memory; those of steps.
  Result<> rehearse();
  // Once, before the first step, on all ranks. Errors: there is not enough memory; see ExpertBalancer.
  // sources: places for sounds or prompts, of models with cross attention.
  Result<> allocate_cache(std::int64_t blocks, std::int64_t state_slots, std::int64_t sources = 0);

  const Model& model() const { return *model_; }
  const Device& device() const { return *backend_.device; }
  const Backend& backend() const { return backend_; }
  // Decoder::residual of the last step.
  View residual(std::int64_t tokens) const { return decoder_->residual(tokens); }
  // What a device of its own memory must have left when the cache is there too: the part of the sampler's
  // memory that grows with what requests ask for, recordings, and the code of kernels, which is loaded when
  // it first runs. Without a rehearsal: an estimate.
  std::int64_t later_bytes() const;
  // What the layers keep of one sound or prompt; 0: they look at none.
  std::int64_t source_bytes() const { return source_encoder_ ? source_encoder_->place_bytes() : 0; }

  bool asynchronous() const override { return options_.asynchronous; }
  Result<> forward(const Batch& batch) override;
  // Of a model that drafts for another: token i of the next forward() comes with row rows[i] of the last
  // step of `from`, which is the other's executor, or this one.
  Result<> read_hidden(const LocalExecutor& from, std::span<const std::int32_t> rows);
  // On ranks other than 0, where rank 0 samples: this rank's part of the logits of these tokens.
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
  // Where a step's inputs lie; places depend on the number of tokens alone.
  struct Inputs {
    Part<std::int32_t> ids, positions, types;
    Part<std::int32_t> axes;                                     // [3, tokens], of ropes with axes
    std::vector<Part<std::int64_t>> slots;                       // of each cache group
    Part<std::int32_t> state_slots, state_starts, state_copies;  // of recurrent layers
    Part<std::int32_t> pending_tokens, pending_rows;
    Part<std::int32_t> adapter_tokens, adapter_starts;
    Part<std::int32_t> image_rows;  // of the tokens of Batch::images, one image behind the other
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
  // Numbers of what has an adapter, sorted by it.
  struct ByAdapter {
    std::vector<const Adapter*> adapters;  // those that are there
    std::vector<std::int32_t> starts;      // [adapters + 1]: adapters[i] has numbers[starts[i]] ..
    std::vector<std::int32_t> numbers;
  };
  // places: of the adapters of 0, 1 ..; -1: none.
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
  // Behind every step so far: of a device that works by itself one may still write a block that is to be
  // exported, or use one that has been freed and is imported to.
  std::atomic<Stream::Mark> steps_begun_ = 0;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<ExpertBalancer> balancer_;           // null: experts stay where they are
  std::vector<std::unique_ptr<AttentionPlan>> plans_;  // one a cache group
  DecodeRecordings recordings_;
  std::optional<std::int64_t> recording_bytes_;  // of one, as rehearsed

  std::optional<AdapterReader> reader_;          // with max_adapters
  std::vector<Adapter> adapters_;                // by place
  std::vector<std::int32_t> sequence_adapters_;  // of the step
  ByAdapter adapted_tokens_;                     // of the step
  ByAdapter adapted_rows_;                       // of the logits being made
  std::vector<std::int32_t> item_adapters_;      // of tokens or rows being sorted

  std::unique_ptr<RowEncoder> row_encoder_;  // of models with images or sound in their prompts
  std::vector<Buffer> images_;               // by place
  std::size_t begun_image_ = 0;              // its place
  std::vector<ImageRows> step_images_;
  std::vector<std::vector<std::unique_ptr<AttentionPlan>>>
      whole_plans_;                                // of one image each, one a cache group
  std::vector<WholeSpan> wholes_;                  // of the step
  std::unique_ptr<SourceEncoder> source_encoder_;  // of models with cross attention

  StepMemory inputs_memory_, row_memory_;
  Inputs inputs_;
  std::vector<GroupBatch> groups_;
  std::vector<std::int32_t> query_starts_, lengths_;  // of the step, padding included
  std::vector<SequenceId> sequences_;                 // of the step
  Buffer logits_;              // f32 [logit rows, vocab]; with a head [.., pooled_size]
  std::vector<float> pooled_;  // of the last step

  // The last sample(): the row that chooses each sequence's next token, by sequence; the tokens that the host
  // has already; whether the rows behind those are still being chosen.
  std::vector<std::pair<SequenceId, std::int32_t>> owners_;
  std::vector<SampledToken> results_;
  bool sampling_ = false;
};

}  // namespace octavo
