// KV blocks and saved states in memory that outlives the engine's process (--kv-survives-engine). The
// server's process owns the memory. When a new engine maps it, the blocks with complete and intact contents
// are in its prefix cache.
//
// The memory contains the records of the blocks and those of the states (kv/block_records.h), then the
// blocks, then the states. Blocks and states begin at huge pages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "engine/cache/kv_memory.h"
#include "kv/block_records.h"
#include "request/engine_stats.h"
#include "schedule/scheduler.h"

namespace octavo {

struct KeptShape {
  BlockRecordsShape blocks;
  std::size_t block_bytes = 0;
  // Slots of recurrent states. Saved states are in the last slots.
  int state_slots = 0, saved_states = 0;
  std::size_t state_bytes = 0;  // bytes of a slot
};

class KeptCache final : public BlockObserver, public StateObserver {
 public:
  struct Opened {
    KeptBlocks blocks;
    std::unique_ptr<KeptCache> cache;  // refers to the memory of `blocks`, which must live longer
  };

  // Returns the number of blocks that the memory of this descriptor has, if its block size and identity are
  // those of `shape`.
  static std::optional<int> blocks_of(int descriptor, const BlockRecordsShape& shape);
  // Maps the memory, and takes ownership of the descriptor. Memory of another shape becomes empty. Returns io
  // after a system error, and resource_exhausted if its file system is too small.
  static Result<Opened> open(int descriptor, const KeptShape& shape);

  // Seed of the prefix keys, which must be equal in all engines that use the memory.
  std::uint64_t hash_seed() const { return blocks_.records.seed(); }

  // Gives the scheduler the contents of an earlier engine, and records its contents from now on. Called once,
  // before the scheduler has sequences. threads: number of threads that verify the blocks. Returns the
  // restored blocks of the group that contains whole prefixes.
  std::vector<BlockId> restore(Scheduler& scheduler, int threads);

  KeptBlockStats stats() const;

  void acquired(BlockId block) override { blocks_.records.set_released(block, BlockRecords::kInUse); }
  void released(BlockId block) override { blocks_.records.set_released(block, ++releases_); }
  void remembered(BlockId block, const BlockContent& content, PrefixId prefix) override;
  void evicted(BlockId block) override { blocks_.records.erase(block); }
  void cleared() override { blocks_.records.erase_all(); }

  void state_kept(int slot, PrefixId prefix) override;
  void state_used(int slot) override { states_.records.set_released(slot - first_saved_, ++releases_); }
  void state_removed(int slot) override { states_.records.erase(slot - first_saved_); }

 private:
  // Records, and the data to which they belong.
  struct Recorded {
    BlockRecords records;
    std::span<const std::byte> data;
    int count;
    std::size_t bytes;  // bytes of one block or state

    std::uint64_t checksum(int index) const;
    std::vector<int> intact(int threads) const;
    std::int64_t erase_except(const std::vector<int>& kept);
  };
  struct Layout;

  KeptCache(std::span<std::byte> memory, const KeptShape& shape, const Layout& layout);

  std::vector<BlockId> restore_blocks(Scheduler& scheduler, int threads,
                                      std::unordered_set<PrefixId>& reachable);
  std::vector<int> restore_states(Scheduler& scheduler, int threads,
                                  const std::unordered_set<PrefixId>& reachable);

  Recorded blocks_, states_;
  int first_saved_;  // slot of the first saved state
  std::uint64_t releases_ = 0;
};

}  // namespace octavo
