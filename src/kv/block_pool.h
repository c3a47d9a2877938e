// Manages the blocks of the paged KV cache. It counts the users of each block, and finds cached content in
// blocks without users.
//
// Paged attention and reference-counted sharing follow Kwon et al., "Efficient Memory Management for Large
// Language Model Serving with PagedAttention" (SOSP 2023). A block without users keeps its content until
// the block is allocated again. The least recently used block is allocated first. So the free blocks are
// the prefix cache.
//
// The constructor allocates all memory. Operations take O(1) plus the length of one hash bucket.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/events.h"

namespace octavo {

using BlockId = std::int32_t;
inline constexpr BlockId kNoBlock = -1;

// Identifies the content of a block, which consists of the tokens in the block and in all earlier blocks of
// the prefix. An id is never reused for a different content, so two blocks with the same id have equal
// contents even if hashes collide.
using PrefixId = std::uint64_t;
inline constexpr PrefixId kEmptyPrefix = 0;  // the prefix before the first block
// argument of a search that does not know the prefix before the block
inline constexpr PrefixId kAnyPrefix = ~PrefixId{0};

struct BlockContent {
  int group = 0;                         // index of the cache group whose layers wrote the block
  Hash128 key = {};                      // chained hash of all tokens up to the end of the block
  Hash128 extra = {};                    // hash of all other inputs: CacheIdentity and media
  PrefixId parent = kEmptyPrefix;        // content of the previous block
  std::span<const std::int32_t> tokens;  // block_size tokens
  Hash128 parent_key = {};  // key of the previous block, zero for the first block; used in events only
};

// Is notified when blocks change. Calls come from the thread that uses the pool.
class BlockObserver {
 public:
  virtual void allocated(BlockId) {}
  virtual void acquired(BlockId) {}
  virtual void released(BlockId) {}                                   // the block has no users any more
  virtual void remembered(BlockId, const BlockContent&, PrefixId) {}  // see BlockPool::remember
  virtual void evicted(BlockId) {}                                    // the content of the block is removed
  virtual void cleared() {}

 protected:
  ~BlockObserver() = default;
};

class BlockPool {
 public:
  BlockPool(int num_blocks, int block_size, int group_count);

  int block_size() const { return block_size_; }
  int total() const { return total_; }
  int free() const { return free_; }  // number of blocks without users, with or without cached content
  int cached() const { return cached_free_; }
  int used() const { return total_ - free_; }

  // Returns the free block that was used least recently, and evicts its content. Blocks without content are
  // returned first. There must be a free block.
  BlockId allocate(int group);

  // Adds a user. The block may be free or in use.
  void acquire(BlockId block);

  // Removes a user. A block without users is free, but its content stays cached.
  void release(BlockId block);

  // Returns a block with this content, or kNoBlock. Tokens, `extra` and `parent` must be equal, not only
  // the key. If content.parent is kAnyPrefix, the 128-bit key alone identifies the prefix before the block.
  BlockId find(const BlockContent& content) const;

  // Loads into the CPU cache the memory that find() reads. Call it shortly before find().
  void prefetch(int group, Hash128 key) const;

  // Sets the content of a block in use, so that find() returns the block. Several blocks may have the same
  // content.
  void remember(BlockId block, const BlockContent& content, PrefixId prefix);

  // After a restart: sets the content that a free block had in the earlier process, and marks the block as
  // the most recently used one. new_prefix() then returns only ids above all restored ids.
  void restore(BlockId block, const BlockContent& content, PrefixId prefix);

  PrefixId new_prefix() { return ++last_prefix_; }
  PrefixId prefix(BlockId block) const { return blocks_[at(block)].prefix; }
  PrefixId parent(BlockId block) const { return blocks_[at(block)].parent; }
  int references(BlockId block) const { return blocks_[at(block)].references; }

  // Returns the sum of (users - 1) over all blocks of the group that have users. This is the number of
  // blocks that sharing saves.
  int extra_references(int group) const { return extra_references_[static_cast<std::size_t>(group)]; }

  // Removes all contents, also those of blocks in use.
  void reset();

  // Logs from now on when a content becomes available or unavailable. A content in several blocks is logged
  // when the first of these blocks gets the content and when the last one loses it. The log must outlive
  // this object.
  void log_to(KvEventLog& log) { log_ = &log; }

  // The observer must outlive this object.
  void observe(BlockObserver& observer) { observers_.push_back(&observer); }

  // If the log has lost events, logs all contents again as soon as the log has space.
  void log_all();

  // CHECKs that counts, lists and buckets agree. Takes linear time, so only tests and fuzzers call it.
  void check() const;

 private:
  struct Block {
    Hash128 key;
    Hash128 extra;
    Hash128 parent_key;
    PrefixId prefix = kEmptyPrefix;  // kEmptyPrefix: the block has no content
    PrefixId parent = kEmptyPrefix;
    std::int32_t references = 0;
    std::int32_t group = 0;
    // Neighbours of the block in the ring of free blocks.
    BlockId older = kNoBlock;
    BlockId newer = kNoBlock;
    BlockId next_in_bucket = kNoBlock;
  };

  static std::size_t at(BlockId block) { return static_cast<std::size_t>(block); }
  std::size_t bucket(int group, Hash128 key) const;
  std::span<std::int32_t> tokens(BlockId block);
  bool holds(BlockId block, const BlockContent& content) const;
  bool has_twin(BlockId block) const;
  void log_stored(BlockId block);
  void link_after(BlockId before, BlockId block);
  void unlink(BlockId block);
  void forget(BlockId block);

  int total_;
  int block_size_;
  int free_ = 0;
  int cached_free_ = 0;
  PrefixId last_prefix_ = kEmptyPrefix;
  std::vector<Block> blocks_;  // total_ + 1 entries; the last entry is the head of the ring of free blocks
  std::vector<std::int32_t> tokens_;   // [total, block_size]
  std::vector<BlockId> buckets_;       // first block of each hash bucket; the size is a power of two
  std::vector<int> extra_references_;
  KvEventLog* log_ = nullptr;
  std::vector<BlockObserver*> observers_;
};

}  // namespace octavo
