// Keeps KV blocks and saved states in memory that outlives the engine process (--kv-survives-engine). The
// server process owns the memory. When a new engine process maps it, the prefix cache starts with all
// blocks whose contents are complete and intact.
//
// The memory contains the records of the blocks, the records of the states (kv/block_records.h), the
// blocks, and the states. Blocks and states start at a huge page.
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
  // Number of slots for recurrent states. The last saved_states of them contain the saved states.
  int state_slots = 0, saved_states = 0;
  std::size_t state_bytes = 0;  // bytes of a slot
};

class KeptCache final : public BlockObserver, public StateObserver {
 public:
  struct Opened {
    KeptBlocks blocks;
    std::unique_ptr<KeptCache> cache;  // refers to the memory in `blocks`, which must outlive it
  };

  // Returns the size of the memory in bytes.
  static std::size_t bytes(const KeptShape& shape);
  // `descriptor` is a file descriptor of kept memory. Returns the number of blocks in the memory, or nullopt
  // if block size or identity of the memory differ from `shape`.
  static std::optional<int> blocks_of(int descriptor, const BlockRecordsShape& shape);
  // Maps the memory and takes ownership of the descriptor. Empties the memory if an earlier engine used it
  // with another shape. Returns io if a system call fails, and resource_exhausted if the file system of the
  // memory is too small.
  static Result<Opened> open(int descriptor, const KeptShape& shape);

  // Seed of the hashes of prefixes. All engines that use the memory must use the same seed.
  std::uint64_t hash_seed() const { return blocks_.records.seed(); }

  // Gives the scheduler the intact blocks and states of an earlier engine, and records all changes from now
  // on. Must be called once, before the first sequence is added. `threads` is the number of threads that
  // verify the blocks. Returns the restored blocks of the first group with full attention.
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
  struct Recorded {
    BlockRecords records;
    std::span<const std::byte> data;
    int count;
    std::size_t bytes;  // size of one block or of one state in bytes

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
  int first_saved_;
  std::uint64_t releases_ = 0;
};

}  // namespace octavo
