#include "engine/cache/kept_cache.h"

#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/pages.h"
#include "base/thread_pool.h"

namespace octavo {
namespace {

constexpr std::size_t to_huge_page(std::size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

BlockRecordsShape states_of(const KeptShape& shape) {
  return {.num_blocks = shape.saved_states, .block_size = 0, .identity = shape.blocks.identity};
}

int whole_group(const std::vector<CacheGroup>& groups) {
  const auto found = std::ranges::find(groups, 0, &CacheGroup::window);
  return found == groups.end() ? -1 : static_cast<int>(found - groups.begin());
}

}  // namespace

// Offsets and sizes in the memory, in bytes.
struct KeptCache::Layout {
  std::size_t state_records, blocks, block_bytes, states, state_bytes;

  explicit Layout(const KeptShape& shape)
      : state_records(BlockRecords::bytes(shape.blocks)),
        blocks(to_huge_page(state_records + BlockRecords::bytes(states_of(shape)))),
        block_bytes(static_cast<std::size_t>(shape.blocks.num_blocks) * shape.block_bytes),
        states(to_huge_page(blocks + block_bytes)),
        state_bytes(static_cast<std::size_t>(shape.state_slots) * shape.state_bytes) {}

  std::size_t end() const { return states + state_bytes; }
};

std::uint64_t KeptCache::Recorded::checksum(int index) const {
  return hash_bytes(HashAlgorithm::xxh3_128, data.subspan(static_cast<std::size_t>(index) * bytes, bytes), 0)
      .low;
}

std::vector<int> KeptCache::Recorded::intact(int threads) const {
  std::vector<char> good(static_cast<std::size_t>(count));
  ThreadPool pool(std::max(threads, 1));
  pool.for_units(count, [&](int, std::int64_t unit) {
    const int i = static_cast<int>(unit);
    good[static_cast<std::size_t>(unit)] =
        records.state(i) == BlockRecords::State::complete && records.read(i).data_checksum == checksum(i);
  });
  std::vector<int> found;
  for (int i = 0; i < count; ++i)
    if (good[static_cast<std::size_t>(i)]) found.push_back(i);
  return found;
}

// Empties all records that are not in `kept`. Returns how many of the emptied records had content.
std::int64_t KeptCache::Recorded::erase_except(const std::vector<int>& kept) {
  std::vector<char> is_kept(static_cast<std::size_t>(count));
  for (const int i : kept) is_kept[static_cast<std::size_t>(i)] = true;
  std::int64_t erased = 0;
  for (int i = 0; i < count; ++i) {
    if (is_kept[static_cast<std::size_t>(i)]) continue;
    erased += records.state(i) != BlockRecords::State::empty;
    records.erase(i);
  }
  return erased;
}

std::size_t KeptCache::bytes(const KeptShape& shape) { return Layout(shape).end(); }

std::optional<int> KeptCache::blocks_of(int descriptor, const BlockRecordsShape& shape) {
  std::vector<std::byte> header(BlockRecords::bytes({}));
  if (pread(descriptor, header.data(), header.size(), 0) != std::ssize(header)) return std::nullopt;
  return BlockRecords::blocks_of(header, shape);
}

Result<KeptCache::Opened> KeptCache::open(int descriptor, const KeptShape& shape) {
  const Layout layout(shape);
  TRY(SharedMemory memory, SharedMemory::open(descriptor, layout.end()));
  const std::span<std::byte> all = memory.bytes();
  Opened opened;
  opened.cache.reset(new KeptCache(all, shape, layout));
  opened.blocks = {.memory = std::move(memory),
                   .bytes = all.subspan(layout.blocks, layout.block_bytes),
                   .states = all.subspan(layout.states, layout.state_bytes)};
  return opened;
}

KeptCache::KeptCache(std::span<std::byte> memory, const KeptShape& shape, const Layout& layout)
    : blocks_{.records = {memory.first(layout.state_records), shape.blocks},
              .data = memory.subspan(layout.blocks, layout.block_bytes),
              .count = shape.blocks.num_blocks,
              .bytes = shape.block_bytes},
      states_{.records = {memory.first(layout.blocks).subspan(layout.state_records), states_of(shape)},
              .data = memory.subspan(layout.states, layout.state_bytes)
                          .last(static_cast<std::size_t>(shape.saved_states) * shape.state_bytes),
              .count = shape.saved_states,
              .bytes = shape.state_bytes},
      first_saved_(shape.state_slots - shape.saved_states) {
  if (blocks_.records.continues() && states_.records.continues()) return;
  const std::uint64_t seed = secret_seed();
  blocks_.records.begin(seed);
  states_.records.begin(seed);
}

void KeptCache::remembered(BlockId block, const BlockContent& content, PrefixId prefix) {
  blocks_.records.write(block, content, prefix, blocks_.checksum(block));
}

void KeptCache::state_kept(int slot, PrefixId prefix) {
  const int index = slot - first_saved_;
  states_.records.write(index, {}, prefix, states_.checksum(index));
  states_.records.set_released(index, ++releases_);
}

std::vector<BlockId> KeptCache::restore(Scheduler& scheduler, int threads) {
  std::unordered_set<PrefixId> reachable{kEmptyPrefix};
  const std::vector<BlockId> blocks = restore_blocks(scheduler, threads, reachable);
  const std::vector<int> states = restore_states(scheduler, threads, reachable);
  const std::int64_t discarded = blocks_.erase_except(blocks);
  states_.erase_except(states);
  blocks_.records.kept() += std::ssize(blocks);
  blocks_.records.discarded() += discarded;
  if (discarded > 0 || !blocks.empty())
    log_info(
        "{} KV blocks of the previous engine are in the prefix cache, {} were unusable (incomplete, damaged "
        "or without their prefix)",
        blocks.size(), discarded);
  scheduler.observe(static_cast<BlockObserver&>(*this));
  scheduler.observe(static_cast<StateObserver&>(*this));

  const int group = std::max(whole_group(scheduler.options().groups), 0);
  std::vector<BlockId> of_group;
  std::ranges::copy_if(blocks, std::back_inserter(of_group),
                       [&](BlockId block) { return blocks_.records.read(block).content.group == group; });
  return of_group;
}

// Returns the restored blocks. Adds the contents of the blocks to `reachable`.
std::vector<BlockId> KeptCache::restore_blocks(Scheduler& scheduler, int threads,
                                               std::unordered_set<PrefixId>& reachable) {
  struct Restored {
    BlockId block;
    BlockRecords::Record record;
  };
  std::vector<Restored> restored;
  for (const BlockId block : blocks_.intact(threads))
    restored.push_back({block, blocks_.records.read(block)});

  // Requests find a block of a prefix only after all earlier blocks of it. Ids ascend along a prefix, so in
  // the order of ids each block comes after its predecessor.
  const int whole = whole_group(scheduler.options().groups);
  std::ranges::sort(restored, {}, [&](const Restored& r) {
    return std::tuple(r.record.prefix, r.record.content.group != whole, r.block);
  });
  std::erase_if(restored, [&](const Restored& r) {
    const bool in_whole = whole < 0 || r.record.content.group == whole;
    const bool found = whole < 0 || reachable.contains(in_whole ? r.record.content.parent : r.record.prefix);
    if (found && in_whole) reachable.insert(r.record.prefix);
    return !found;
  });

  // Restores the least recently used block first. In each sequence, later blocks come first.
  std::ranges::sort(restored, {}, [](const Restored& r) {
    return std::tuple(r.record.released, ~r.record.prefix, r.block);
  });
  std::vector<BlockId> blocks;
  for (const Restored& r : restored) {
    scheduler.restore(r.block, r.record.content, r.record.prefix);
    blocks_.records.set_released(r.block, ++releases_);
    blocks.push_back(r.block);
  }
  return blocks;
}

std::vector<int> KeptCache::restore_states(Scheduler& scheduler, int threads,
                                           const std::unordered_set<PrefixId>& reachable) {
  std::vector<int> states;
  if (states_.count == 0) return states;
  for (const int index : states_.intact(threads))
    if (reachable.contains(states_.records.read(index).prefix)) states.push_back(index);
  std::ranges::sort(states, {}, [&](int index) { return states_.records.read(index).released; });
  for (const int index : states) {
    scheduler.restore_state(first_saved_ + index, states_.records.read(index).prefix);
    states_.records.set_released(index, ++releases_);
  }
  return states;
}

KeptBlockStats KeptCache::stats() const {
  return {.kept = blocks_.records.kept(), .discarded = blocks_.records.discarded()};
}

}  // namespace octavo
