#include "engine/execute/ranked_executor.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <type_traits>

#include "base/log.h"

namespace octavo {
namespace {

constexpr auto kLook = std::chrono::milliseconds(200);

enum class Order : std::uint8_t {
  allocate_cache,
  forward,
  logits,
  put_adapter,
  drop_adapter,
  begin_media,
  advance_media,
  drop_media,
  release_cache,
  end
};

struct CacheSize {
  std::int64_t blocks, state_slots;
};

// A message is written and read by the same function: plain values, and vectors of them behind their sizes.
class Writer {
 public:
  explicit Writer(std::vector<std::byte>& bytes) : bytes_(bytes) { bytes.clear(); }

  template <class T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(&value, sizeof value);
  }
  template <class T>
  void operator()(const std::vector<T>& values) {
    (*this)(std::span<const T>(values));
  }
  template <class T>
  void operator()(std::span<const T> values) {
    (*this)(values.size());
    put(values.data(), values.size_bytes());
  }
  void operator()(const std::string& text) { (*this)(std::span<const char>(text)); }

 private:
  void put(const void* data, std::size_t size) {
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + size);
    if (size > 0) std::memcpy(bytes_.data() + begin, data, size);
  }
  std::vector<std::byte>& bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  void operator()(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    take(&value, sizeof value);
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    std::size_t size = 0;
    (*this)(size);
    CHECK(size <= bytes_.size() / sizeof(T), "{} values in {} bytes", size, bytes_.size());
    values.resize(size);
    take(values.data(), size * sizeof(T));
  }
  void operator()(std::string& text) {
    std::size_t size = 0;
    (*this)(size);
    CHECK(size <= bytes_.size(), "a text of {} in {} bytes", size, bytes_.size());
    text.resize(size);
    take(text.data(), size);
  }

 private:
  void take(void* data, std::size_t size) {
    CHECK(size <= bytes_.size(), "{} of {} bytes", size, bytes_.size());
    if (size > 0) std::memcpy(data, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }
  std::span<const std::byte> bytes_;
};

// What a rank needs of a batch; no tokens are pending.
template <class Archive, class AnyBatch>
void pass(Archive& archive, AnyBatch& batch) {
  archive(batch.ids);
  archive(batch.positions);
  archive(batch.types);
  for (auto& axis : batch.axes) archive(axis);
  archive(batch.query_starts);
  archive(batch.lengths);
  archive(batch.sequences);
  archive(batch.state_slots);
  archive(batch.state_copies);
  archive(batch.restored_states);
  archive(batch.saved_states);
  archive(batch.adapters);
  archive(batch.images);
  for (auto& group : batch.groups) {
    archive(group.tables);
    archive(group.table_stride);
    archive(group.slots);
  }
}

// What an encoder needs of an image or a sound.
template <class Archive, class AnyPart>
void pass_part(Archive& archive, AnyPart& part) {
  archive(part.tokens);
  archive(part.bytes);
  archive(part.columns);
  archive(part.row_breaks);
  archive(part.tiles);
  archive(part.frames);
}

// Where rank 0 finds the blocks of a rank.
struct CacheSegment {
  std::int64_t process = 0, descriptor = 0;
};

// Of all ranks, at all of them.
std::vector<CacheSegment> gather_segments(const LocalExecutor& own, Ranks& ranks) {
  const CacheSegment mine{getpid(), own.cache().segment().fd()};
  std::vector<CacheSegment> all(static_cast<std::size_t>(ranks.layout().size()));
  ranks.groups().all->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

[[noreturn]] void end_for(const Error& error) {
  log_error("the engine ends: {}", error.message);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

Result<std::unique_ptr<RankedExecutor>> RankedExecutor::create(std::unique_ptr<Ranks> ranks,
                                                               std::unique_ptr<LocalExecutor> own,
                                                               std::int64_t blocks, std::int64_t state_slots,
                                                               const std::optional<RankCaches>& caches) {
  std::unique_ptr<RankedExecutor> executor(new RankedExecutor);
  executor->ranks_ = std::move(ranks);
  executor->own_ = std::move(own);
  Writer write(executor->message_);
  write(Order::allocate_cache);
  write(CacheSize{blocks, state_slots});
  TRY_VOID(executor->tell());
  TRY_VOID(executor->ranks_->agree(executor->own_->allocate_cache(blocks, state_slots)));
  if (caches) TRY_VOID(executor->open_caches(*caches, blocks));
  executor->looking_ = std::jthread([e = executor.get()](const std::stop_token& stop) { e->look_on(stop); });
  return executor;
}

// A step that runs finds out by itself, and tells its requests of a host that is gone.
void RankedExecutor::look_on(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopping;
  for (std::unique_lock lock(mutex); !stop.stop_requested();) {
    stopping.wait_for(lock, stop, kLook, [] { return false; });
    if (steps_ > 0 || stop.stop_requested()) continue;
    if (const Result<> there = ranks_->check(); !there) end_for(there.error());
  }
}

Result<> RankedExecutor::open_caches(const RankCaches& caches, std::int64_t blocks) {
  std::vector<SharedMemory> opened;
  std::vector<std::span<std::byte>> memory;
  for (const CacheSegment& segment : gather_segments(*own_, *ranks_)) {
    TRY(SharedMemory each, SharedMemory::open_of(segment.process, segment.descriptor));
    memory.push_back(each.bytes());
    opened.push_back(std::move(each));
  }
  TRY_VOID(ranks_->groups().all->status());
  TRY(memory_, RankedKvMemory::create(caches, own_->backend(), blocks, std::move(memory), std::move(opened)));
  return {};
}

Result<BlockFormat> RankedExecutor::block_format() const {
  if (!memory_) return Executor::block_format();
  TRY(BlockFormat format, own_->block_format());
  memory_->pieces().describe(format);
  return format;
}

RankedExecutor::~RankedExecutor() {
  looking_ = {};
  if (!ranks_ || !ranks_->groups().status()) return;
  Writer write(message_);
  write(Order::end);
  tell();
}

Result<> RankedExecutor::tell() {
  ranks_->groups().all->broadcast(message_);
  return ranks_->groups().all->status();
}

Result<> RankedExecutor::or_end(Result<> done) const {
  if (!done && ranks_->on_one_host()) end_for(done.error());
  return done;
}

Result<> RankedExecutor::forward(const Batch& batch) { return or_end(begin(batch)); }

Result<> RankedExecutor::sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  return or_end(finish(tokens, rows));
}

Result<> RankedExecutor::begin(const Batch& batch) {
  CHECK(batch.pending.empty());
  ++steps_;
  Writer write(message_);
  write(Order::forward);
  write(batch.groups.size());
  pass(write, batch);
  TRY_VOID(tell());
  if (stages() == 1) return own_->forward(batch);
  waiting_.push_back(batch);
  return {};
}

Result<> RankedExecutor::finish(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  Writer write(message_);
  write(Order::logits);
  write(tokens);
  TRY_VOID(tell());
  if (stages() > 1) {
    TRY_VOID(own_->forward(waiting_.front()));
    waiting_.pop_front();
  }
  TRY_VOID(own_->sample(tokens, rows));
  --steps_;
  return {};
}

Result<std::span<const float>> RankedExecutor::pool(std::span<const std::int32_t> starts,
                                                    std::span<const std::uint8_t> heads) {
  --steps_;
  return own_->pool(starts, heads);
}

// Whole, as it was read: each rank takes its part.
Result<> RankedExecutor::put_adapter(int place, std::span<const AdapterFile::Change> changes) {
  Writer write(message_);
  write(Order::put_adapter);
  write(place);
  write(changes.size());
  for (const AdapterFile::Change& change : changes) {
    write(change.linear);
    write(change.a);
    write(change.b);
  }
  TRY_VOID(or_end(tell()));
  return own_->put_adapter(place, changes);
}

void RankedExecutor::drop_adapter(int place) {
  Writer write(message_);
  write(Order::drop_adapter);
  write(place);
  (void)or_end(tell());  // else the next step says so
  own_->drop_adapter(place);
}

// Each rank encodes it: what comes of it is in all ranks' steps.
Result<> RankedExecutor::begin_media(int place, const MediaPart& part) {
  Writer write(message_);
  write(Order::begin_media);
  write(place);
  pass_part(write, part);
  TRY_VOID(or_end(tell()));
  return own_->begin_media(place, part);
}

bool RankedExecutor::advance_media(int rows) {
  Writer write(message_);
  write(Order::advance_media);
  write(rows);
  (void)or_end(tell());  // else the next step says so
  return own_->advance_media(rows);
}

void RankedExecutor::drop_media(int place) {
  Writer write(message_);
  write(Order::drop_media);
  write(place);
  (void)or_end(tell());  // as above
  own_->drop_media(place);
}

Result<> RankedExecutor::release_cache() {
  Writer write(message_);
  write(Order::release_cache);
  TRY_VOID(or_end(tell()));
  return own_->release_cache();
}

Result<> follow_rank_0(LocalExecutor& own, Ranks& ranks) {
  ProcessGroup& all = *ranks.groups().all;
  const RankLayout& layout = ranks.layout();
  const bool last_stage = layout.stage(ranks.rank()) == layout.pipeline - 1;
  std::vector<std::byte> message;
  std::deque<Batch> waiting;  // as rank 0's
  std::vector<std::int32_t> tokens;
  while (true) {
    all.broadcast(message);
    TRY_VOID(all.status());
    Reader read(message);
    Order order{};
    read(order);
    if (order == Order::end) return {};
    if (order == Order::allocate_cache) {
      CacheSize size{};
      read(size);
      TRY_VOID(ranks.agree(own.allocate_cache(size.blocks, size.state_slots)));
      if (own.cache().segment().fd() >= 0) gather_segments(own, ranks);
    } else if (order == Order::put_adapter) {
      int place = 0;
      std::size_t count = 0;
      read(place);
      read(count);
      std::vector<AdapterFile::Change> changes(count);
      for (AdapterFile::Change& change : changes) {
        read(change.linear);
        read(change.a);
        read(change.b);
      }
      TRY_VOID(own.put_adapter(place, changes));
    } else if (order == Order::drop_adapter) {
      int place = 0;
      read(place);
      own.drop_adapter(place);
    } else if (order == Order::begin_media) {
      int place = 0;
      MediaPart part;
      read(place);
      pass_part(read, part);
      TRY_VOID(own.begin_media(place, part));
    } else if (order == Order::advance_media) {
      int rows = 0;
      read(rows);
      own.advance_media(rows);
    } else if (order == Order::drop_media) {
      int place = 0;
      read(place);
      own.drop_media(place);
    } else if (order == Order::release_cache) {
      TRY_VOID(own.release_cache());
    } else if (order == Order::forward) {
      Batch& batch = waiting.emplace_back();
      std::size_t groups = 0;
      read(groups);
      batch.groups.resize(groups);
      pass(read, batch);
      if (last_stage && layout.pipeline > 1) continue;  // until rank 0 computes it, too
      TRY_VOID(own.forward(batch));
      waiting.pop_front();
    } else if (last_stage) {
      if (layout.pipeline > 1) {
        TRY_VOID(own.forward(waiting.front()));
        waiting.pop_front();
      }
      read(tokens);
      TRY_VOID(own.give_logits(tokens));
    }
  }
}

}  // namespace octavo
