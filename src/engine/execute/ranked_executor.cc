#include "engine/execute/ranked_executor.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <variant>

#include "base/check.h"
#include "base/log.h"
#include "base/pack.h"

namespace octavo {
namespace {

constexpr auto kLook = std::chrono::milliseconds(200);

// Commands that rank 0 sends to the other ranks. A rank runs its commands in order of arrival.
namespace order {
struct AllocateCache {
  std::int64_t blocks = 0, state_slots = 0;
};
struct Forward {
  Batch batch;  // has no pending tokens
};
struct Assist {};
struct Logits {
  std::vector<std::int32_t> tokens;
};
struct PutAdapter {
  int slot = 0;
  std::vector<AdapterFile::Change> changes;
};
struct DropAdapter {
  int slot = 0;
};
struct BeginMedia {
  int slot = 0;
  MediaPart part;
};
struct AdvanceMedia {
  int rows = 0;
};
struct DropMedia {
  int slot = 0;
};
struct ReleaseCache {};
struct RestoreCache {};
struct End {};

using Any = std::variant<AllocateCache, Forward, Assist, Logits, PutAdapter, DropAdapter, BeginMedia,
                         AdvanceMedia, DropMedia, ReleaseCache, RestoreCache, End>;
}  // namespace order

// Identifies the memory of another rank's blocks, so that rank 0 can open it: shared memory of the host, or
// memory of a device.
struct CacheSegment {
  std::int64_t process = 0, descriptor = 0;
  CudaMemoryHandle on_device;
};

bool shares_cache(const LocalExecutor& own) {
  return own.cache().segment().fd() >= 0 || own.cache().device_segment();
}

std::vector<CacheSegment> gather_segments(const LocalExecutor& own, Ranks& ranks) {
  const CacheSegment mine{getpid(), own.cache().segment().fd(),
                          own.cache().device_segment().value_or(CudaMemoryHandle())};
  std::vector<CacheSegment> all(static_cast<std::size_t>(ranks.layout().size()));
  ranks.groups().all->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

[[noreturn]] void end_for(const Error& error) {
  log_error("the engine stops: {}", error.message);
  std::_Exit(EXIT_FAILURE);
}

// Waits for kLook. Returns false if the thread must stop.
bool pause(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopping;
  std::unique_lock lock(mutex);
  stopping.wait_for(lock, stop, kLook, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

Result<std::unique_ptr<RankedExecutor>> RankedExecutor::create(std::unique_ptr<Ranks> ranks,
                                                               std::unique_ptr<LocalExecutor> own,
                                                               std::int64_t blocks, std::int64_t state_slots,
                                                               const std::optional<RankCaches>& caches) {
  std::unique_ptr<RankedExecutor> executor(new RankedExecutor);
  executor->ranks_ = std::move(ranks);
  executor->own_ = std::move(own);
  TRY_VOID(executor->broadcast<order::AllocateCache>(blocks, state_slots));
  TRY_VOID(executor->ranks_->agree(executor->own_->allocate_cache(blocks, state_slots)));
  if (caches) TRY_VOID(executor->open_caches(*caches, blocks));
  executor->looking_ = std::jthread([e = executor.get()](const std::stop_token& stop) { e->look_on(stop); });
  return executor;
}

// Runs on a separate thread. If the host exchanges the values, it checks the ranks only while the engine is
// idle, because a step detects a lost rank itself and reports it to its requests.
void RankedExecutor::look_on(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  const bool device_waits = own_->device_waits_for_ranks();
  const std::chrono::milliseconds most(ranks_->step_timeout_ms());
  std::uint64_t calls = 0;
  Clock::time_point since = Clock::now();  // last time when no call ran, or another call had begun
  while (pause(stop)) {
    if (steps_ > 0 && !device_waits) continue;
    if (const Result<> status = ranks_->check(); !status) end_for(status.error());
    // Steps that have begun may rest between two calls, as long as the engine is paused.
    const std::uint64_t now_calls = calls_;
    if (now_calls % 2 == 0 || std::exchange(calls, now_calls) != now_calls) since = Clock::now();
    if (Clock::now() - since > most)
      end_for({ErrorCode::unavailable,
               fmt::format("a part of a step has not ended for {} ms: a rank does not respond", most.count()),
               {}});
  }
}

Result<> RankedExecutor::open_caches(const RankCaches& caches, std::int64_t blocks) {
  std::vector<SharedMemory> opened;
  std::vector<Buffer> on_devices;
  std::vector<std::span<std::byte>> memory;
  const std::vector<CacheSegment> segments = gather_segments(*own_, *ranks_);
  TRY_VOID(ranks_->groups().all->status());
  for (const CacheSegment& segment : segments) {
    if (own_->device().shares_host_memory()) {
      TRY(SharedMemory each, SharedMemory::open_of(segment.process, segment.descriptor));
      memory.push_back(each.bytes());
      opened.push_back(std::move(each));
    } else if (memory.empty()) {  // a process cannot open its own memory
      memory.push_back(own_->cache().blocks());
    } else {
      TRY(Buffer each, cuda_open_shared(segment.on_device, own_->cache().blocks().size()));
      memory.emplace_back(static_cast<std::byte*>(each.data()), each.bytes());
      on_devices.push_back(std::move(each));
    }
  }
  TRY(memory_, RankedKvMemory::create(caches, own_->backend(), blocks, std::move(memory), std::move(opened),
                                      std::move(on_devices)));
  return {};
}

Result<BlockFormat> RankedExecutor::block_format() const {
  TRY(BlockFormat format, own_->block_format());
  memory_->pieces().describe(format);
  return format;
}

RankedExecutor::~RankedExecutor() {
  looking_ = {};
  memory_.reset();  // closes the blocks of the other ranks before these ranks free them
  if (!ranks_ || !ranks_->groups().status()) return;
  if (broadcast<order::End>()) own_->leave();
}

template <class Order, class... Fields>
Result<> RankedExecutor::broadcast(const Fields&... fields) {
  static_assert(packs_as<Order, Fields...>());
  message_.clear();
  Packer packer(message_);
  packer.put(kind_in<Order>(static_cast<const order::Any*>(nullptr)));
  (packer.put(fields), ...);
  ranks_->groups().all->broadcast(message_);
  return ranks_->groups().all->status();
}

Result<> RankedExecutor::or_end(Result<> done) const {
  if (!done && ranks_->on_one_host()) end_for(done.error());
  return done;
}

RankedExecutor::Call::Call(std::atomic<std::uint64_t>& calls) : calls_(calls) { ++calls_; }
RankedExecutor::Call::~Call() { ++calls_; }

Result<> RankedExecutor::forward(const Batch& batch) {
  const Call call(calls_);
  return or_end(begin(batch));
}

Result<> RankedExecutor::sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  const Call call(calls_);
  return or_end(finish(tokens, rows));
}

bool RankedExecutor::is_called(ArrivalWatch& watch) {
  if (own_->has_left()) return false;
  if (ranks_->engines()->has_arrivals()) return true;
  watch.arm();
  return false;
}

Result<> RankedExecutor::assist() {
  const Call call(calls_);
  ++steps_;
  Result<> done = broadcast<order::Assist>();
  if (done) done = own_->assist();
  --steps_;
  return or_end(std::move(done));
}

Result<> RankedExecutor::begin(const Batch& batch) {
  CHECK(batch.pending.empty());
  ++steps_;
  TRY_VOID(broadcast<order::Forward>(batch));
  if (stages() == 1) return own_->forward(batch);
  waiting_.push_back(batch);
  return {};
}

Result<> RankedExecutor::finish(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  TRY_VOID(broadcast<order::Logits>(tokens));
  if (stages() > 1) {
    TRY_VOID(own_->forward(waiting_.front()));
    waiting_.pop_front();
  }
  TRY_VOID(own_->sample(tokens, rows));
  --steps_;
  return {};
}

Result<std::span<SampledToken>> RankedExecutor::collect() {
  const Call call(calls_);
  ++steps_;
  auto tokens = own_->collect();
  --steps_;
  if (!tokens) TRY_VOID(or_end(std::unexpected(tokens.error())));
  return tokens;
}

Result<std::span<const float>> RankedExecutor::pool(std::span<const std::int32_t> starts,
                                                    std::span<const std::uint8_t> heads) {
  const Call call(calls_);
  auto vectors = own_->pool(starts, heads);
  --steps_;
  return vectors;
}

// Sends the whole adapter to all ranks. Each rank takes its part.
Result<> RankedExecutor::put_adapter(int slot, std::span<const AdapterFile::Change> changes) {
  TRY_VOID(or_end(broadcast<order::PutAdapter>(slot, changes)));
  return own_->adapters()->put_adapter(slot, changes);
}

void RankedExecutor::drop_adapter(int slot) {
  // If sending the command fails, the next step reports the error.
  (void)or_end(broadcast<order::DropAdapter>(slot));
  own_->adapters()->drop_adapter(slot);
}

// All ranks encode the part, because the steps of all ranks use the result.
Result<> RankedExecutor::begin_media(int slot, const MediaPart& part) {
  const Call call(calls_);
  TRY_VOID(or_end(broadcast<order::BeginMedia>(slot, part)));
  return own_->media_encoder()->begin_media(slot, part);
}

bool RankedExecutor::advance_media(int rows) {
  const Call call(calls_);
  // If sending the command fails, the next step reports the error.
  (void)or_end(broadcast<order::AdvanceMedia>(rows));
  return own_->media_encoder()->advance_media(rows);
}

void RankedExecutor::drop_media(int slot) {
  // If sending the command fails, the next step reports the error.
  (void)or_end(broadcast<order::DropMedia>(slot));
  own_->media_encoder()->drop_media(slot);
}

Result<> RankedExecutor::release_cache() {
  // Other processes have opened the memory of a GPU, which must not be freed.
  if (memory_ && !own_->device().shares_host_memory())
    return failure(
        ErrorCode::unsupported,
        "ranks on GPUs whose KV blocks can be transferred keep the memory of the blocks: set level 2");
  TRY_VOID(or_end(broadcast<order::ReleaseCache>()));
  return own_->release_cache();
}

Result<> RankedExecutor::restore_cache() {
  TRY_VOID(or_end(broadcast<order::RestoreCache>()));
  const Result<> restored = ranks_->all_succeed(own_->restore_cache());
  TRY_VOID(or_end(ranks_->groups().all->status()));
  if (!restored) TRY_VOID(release_cache());  // also on the ranks that had enough memory
  return restored;
}

namespace {

// A rank other than 0. It runs the commands of rank 0 until the End command or an error.
class Follower {
 public:
  Follower(LocalExecutor& own, Ranks& ranks)
      : own_(own),
        ranks_(ranks),
        last_stage_(ranks.layout().stage(ranks.rank()) == ranks.layout().pipeline - 1),
        pipelines_(ranks.layout().pipeline > 1) {}

  Result<> run(const order::AllocateCache& cache) {
    TRY_VOID(ranks_.agree(own_.allocate_cache(cache.blocks, cache.state_slots)));
    if (shares_cache(own_)) gather_segments(own_, ranks_);
    return {};
  }
  Result<> run(order::Forward& forward) {
    if (!last_stage_ || !pipelines_) return own_.forward(forward.batch);
    // The batch waits here until rank 0 computes its part of the step.
    waiting_.push_back(std::move(forward.batch));
    return {};
  }
  Result<> run(const order::Assist&) { return own_.assist(); }
  Result<> run(const order::Logits& logits) {
    if (!last_stage_) return {};
    if (pipelines_) {
      TRY_VOID(own_.forward(waiting_.front()));
      waiting_.pop_front();
    }
    return own_.give_logits(logits.tokens);
  }
  Result<> run(const order::PutAdapter& put) { return own_.adapters()->put_adapter(put.slot, put.changes); }
  Result<> run(const order::DropAdapter& drop) {
    return own_.adapters()->drop_adapter(drop.slot), Result<>();
  }
  Result<> run(const order::BeginMedia& begin) {
    return own_.media_encoder()->begin_media(begin.slot, begin.part);
  }
  Result<> run(const order::AdvanceMedia& advance) {
    return own_.media_encoder()->advance_media(advance.rows), Result<>();
  }
  Result<> run(const order::DropMedia& drop) {
    return own_.media_encoder()->drop_media(drop.slot), Result<>();
  }
  Result<> run(const order::ReleaseCache&) { return own_.release_cache(); }
  // If a rank lacks memory, rank 0 releases the cache of all ranks, and may restore it later.
  Result<> run(const order::RestoreCache&) {
    (void)ranks_.all_succeed(own_.restore_cache());
    return ranks_.groups().all->status();
  }
  Result<> run(const order::End&) { return {}; }

 private:
  LocalExecutor& own_;
  Ranks& ranks_;
  const bool last_stage_, pipelines_;
  std::deque<Batch> waiting_;  // the batches in waiting_ of rank 0, in the same order
};

}  // namespace

Result<> follow_rank_0(LocalExecutor& own, Ranks& ranks) {
  std::jthread looking;
  // On one host, the system ends this process when rank 0 ends.
  if (own.device_waits_for_ranks() && !ranks.on_one_host())
    looking = std::jthread([&](const std::stop_token& stop) {
      while (pause(stop))
        // At a regular end, connections close just before this thread stops.
        if (const Result<> status = ranks.check(); !status && pause(stop)) end_for(status.error());
    });
  Follower follower(own, ranks);
  std::vector<std::byte> message;
  order::Any order;
  while (true) {
    ranks.groups().all->broadcast(message);
    TRY_VOID(ranks.groups().all->status());
    Unpacker unpacker(message);
    unpacker.get(order);
    CHECK(unpacker.complete(), "rank 0 sent {} bytes that are not a command", message.size());
    if (std::holds_alternative<order::End>(order)) return own.leave(), Result<>();
    TRY_VOID(std::visit([&](auto& each) { return follower.run(each); }, order));
  }
}

}  // namespace octavo
