// Executor of an engine with several ranks. Rank 0 sends the work to the other ranks, computes its own
// part, and samples.
//
// With several pipeline stages, the first stage starts a forward pass immediately, while later stages still
// run earlier passes. Rank 0 is in the last stage. It computes its part of a step when the step is sampled.
//
// If a rank on this host dies or hangs, the engine process ends. The server restarts the engine and all its
// ranks, and repeats the unfinished requests, so that streams continue. If a rank on another host is lost,
// the step fails and its requests get an error. While the engine is idle, a thread checks that all ranks
// are alive.
//
// If the devices exchange the values (DeviceGroups::on_stream), a step with a lost rank never ends. So the
// thread also checks the ranks during steps, and ends the engine process, with any number of hosts.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "engine/cache/ranked_kv_memory.h"
#include "engine/execute/local_executor.h"
#include "engine/execute/ranks.h"

namespace octavo {

class RankedExecutor final : public Executor,
                             public AdapterSlots,
                             public MediaEncoder,
                             public BlockExchange,
                             public LockStep {
 public:
  // Allocates the cache on all ranks. `caches` describes the caches of the ranks, if blocks may be
  // exported. Returns an error if a rank does not have enough memory.
  static Result<std::unique_ptr<RankedExecutor>> create(std::unique_ptr<Ranks> ranks,
                                                        std::unique_ptr<LocalExecutor> own,
                                                        std::int64_t blocks, std::int64_t state_slots,
                                                        const std::optional<RankCaches>& caches);
  ~RankedExecutor() override;

  bool asynchronous() const override { return false; }
  int stages() const override { return ranks_->layout().pipeline; }
  Result<> forward(const Batch& batch) override;
  Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override;
  Result<std::span<SampledToken>> collect() override;
  // Only rank 0 runs the pooling head, because it has the complete rows of all tokens.
  bool pools() const override { return own_->pools(); }
  Result<std::span<const float>> pool(std::span<const std::int32_t> starts,
                                      std::span<const std::uint8_t> heads) override;
  AdapterSlots* adapters() override { return own_->adapters() != nullptr ? this : nullptr; }
  MediaEncoder* media_encoder() override { return own_->media_encoder() != nullptr ? this : nullptr; }
  BlockExchange* block_exchange() override { return memory_ ? this : nullptr; }
  LockStep* lock_step() override { return ranks_->engines() != nullptr ? this : nullptr; }
  std::vector<int> engine_sockets() const override { return ranks_->engines()->sockets(); }
  bool is_called(ArrivalWatch& watch) override;
  Result<> assist() override;
  Result<AdapterFile> read_adapter(const std::string& path) const override {
    return own_->adapters()->read_adapter(path);
  }
  Result<> put_adapter(int slot, std::span<const AdapterFile::Change> changes) override;
  void drop_adapter(int slot) override;
  Result<> begin_media(int slot, const MediaPart& part) override;
  bool advance_media(int rows) override;
  void drop_media(int slot) override;
  Result<> release_cache() override;
  Result<> restore_cache() override;
  Result<BlockFormat> block_format() const override;
  Result<Buffer> allocate_staging(std::size_t bytes) override { return own_->allocate_staging(bytes); }
  bool in_host_memory() const override { return own_->in_host_memory(); }
  void export_piece(KvLocation location, std::span<std::byte> out) const override {
    own_->wait_for_begun_steps();
    memory_->export_piece(location, out);
  }
  void import_piece(KvLocation location, std::span<const std::byte> bytes) override {
    own_->wait_for_begun_steps();
    memory_->import_piece(location, bytes);
  }

 private:
  // A call on the engine thread that may wait for the ranks.
  class Call {
   public:
    explicit Call(std::atomic<std::uint64_t>& calls);
    ~Call();
    Call(const Call&) = delete;

   private:
    std::atomic<std::uint64_t>& calls_;
  };

  RankedExecutor() = default;
  Result<> open_caches(const RankCaches& caches, std::int64_t blocks);
  void look_on(const std::stop_token& stop);
  template <class Order, class... Fields>
  Result<> broadcast(const Fields&... fields);
  Result<> begin(const Batch& batch);
  Result<> finish(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows);
  Result<> or_end(Result<> done) const;

  std::unique_ptr<Ranks> ranks_;  // owns the groups that own_ uses
  std::unique_ptr<LocalExecutor> own_;
  std::optional<RankedKvMemory> memory_;
  std::vector<std::byte> message_;
  std::deque<Batch> waiting_;   // batches that are in earlier stages, oldest first
  std::atomic<int> steps_ = 0;  // steps that have begun and not ended
  // Number of begun and ended calls that may wait for the ranks. Odd: a call is running.
  std::atomic<std::uint64_t> calls_ = 0;
  std::jthread looking_;  // checks the ranks; destroyed before ranks_
};

// Main loop of a rank other than 0: runs the commands of rank 0 until the end or a failure. Returns the
// failure.
Result<> follow_rank_0(LocalExecutor& own, Ranks& ranks);

}  // namespace octavo
