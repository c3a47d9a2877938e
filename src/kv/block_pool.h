// The blocks of the paged KV cache, as numbers: the users of each block, and the cached content of unused
// ones.
//
// Paged attention and reference-counted sharing follow Kwon et al., "Efficient Memory Management for Large
// Language Model Serving with PagedAttention" (SOSP 2023). An unused block keeps its content until it is
// reallocated, least recently used first: the free blocks are the prefix cache.
//
// The constructor allocates all memory. Operations are O(1), except for the walk along one hash bucket.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/events.h"

namespace octavo {

using BlockId = std::int32_t;
inline constexpr BlockId kNoBlock = -1;

// Identifies one content: "these blocks of tokens, from the start". The pool never reuses an id, so two
// blocks with equal PrefixId hold the same tokens after the same past, even if hashes collide.
using PrefixId = std::uint64_t;
inline constexpr PrefixId kEmptyPrefix = 0;           // before the first block
inline constexpr PrefixId kAnyPrefix = ~PrefixId{0};  // in a search: unknown

// Content of a full block.
struct BlockContent {
  int group = 0;       // the cache group whose layers wrote it
  Hash128 key = {};    // chained hash of all tokens up to the block's end
  Hash128 extra = {};  // other inputs that change the content or its sharing: CacheIdentity, images
  PrefixId parent = kEmptyPrefix;        // content of all blocks before this one
  std::span<const std::int32_t> tokens;  // block_size tokens
  Hash128 parent_key = {};  // key of the block before, zero for the first; only reported, never compared
};

// Learns what happens to blocks.
class BlockObserver {
 public:
  virtual void allocated(BlockId block) = 0;
  virtual void acquired(BlockId block) = 0;  // the block has one more user
  virtual void evicted(BlockId block) = 0;   // its cached content is dropped for another; allocated() follows
  virtual void cleared() = 0;                // all contents are dropped

 protected:
  ~BlockObserver() = default;
};

class BlockPool {
 public:
  // group_count: number of cache groups that use the pool, for extra_references().
  BlockPool(int num_blocks, int block_size, int group_count);

  int block_size() const { return block_size_; }
  int total() const { return total_; }
  int free() const { return free_; }           // without users, cached ones included
  int cached() const { return cached_free_; }  // free blocks with cached content
  int used() const { return total_ - free_; }

  // Takes the cheapest free block: a blank one, else the least recently used. There must be a free block.
  BlockId allocate(int group);

  // Adds a user to a block, in use or free.
  void acquire(BlockId block);

  // Removes a user. Without users, the block is free and its content stays cached.
  void release(BlockId block);

  // A block with this content, or kNoBlock. Compares tokens, extra and parent, not only hashes. With parent
  // == kAnyPrefix the past is identified by the 128-bit key alone.
  BlockId find(const BlockContent& content) const;

  // Hint: find() of this content follows soon.
  void prefetch(int group, Hash128 key) const;

  // Sets the content of a block in use, so that find() returns it. Several blocks may have the same content.
  void remember(BlockId block, const BlockContent& content, PrefixId prefix);

  PrefixId new_prefix() { return ++last_prefix_; }
  PrefixId prefix(BlockId block) const { return blocks_[at(block)].prefix; }
  PrefixId parent(BlockId block) const { return blocks_[at(block)].parent; }
  int references(BlockId block) const { return blocks_[at(block)].references; }

  // References beyond the first, over all blocks of the group: the memory that sharing saves.
  int extra_references(int group) const { return extra_references_[static_cast<std::size_t>(group)]; }

  // Forgets every content, including that of blocks in use.
  void reset();

  // From now on, logs every content that appears or disappears (for equal contents: the first and the last).
  // The log must outlive this.
  void tell(KvEventLog& log) { log_ = &log; }

  // From now on, calls the observer, which must outlive this.
  void observe(BlockObserver& observer) { observer_ = &observer; }

  // If the log has lost events, logs all contents again once it has room.
  void tell_all();

  // CHECKs that counts, lists and buckets agree. Linear; for tests and fuzzers.
  void check() const;

 private:
  struct Block {
    Hash128 key;
    Hash128 extra;
    Hash128 parent_key;
    PrefixId prefix = kEmptyPrefix;  // id of this block's content; kEmptyPrefix: blank
    PrefixId parent = kEmptyPrefix;
    std::int32_t references = 0;
    std::int32_t group = 0;
    BlockId older = kNoBlock;  // neighbours in the ring of free blocks
    BlockId newer = kNoBlock;
    BlockId next_in_bucket = kNoBlock;
  };

  static std::size_t at(BlockId block) { return static_cast<std::size_t>(block); }
  std::size_t bucket(int group, Hash128 key) const;
  std::span<std::int32_t> tokens(BlockId block);
  bool holds(BlockId block, const BlockContent& content) const;
  bool has_twin(BlockId block) const;
  void tell_stored(BlockId block);
  void link_after(BlockId place, BlockId block);
  void unlink(BlockId block);
  void forget(BlockId block);

  int total_;
  int block_size_;
  int free_ = 0;
  int cached_free_ = 0;
  PrefixId last_prefix_ = kEmptyPrefix;
  std::vector<Block> blocks_;  // total_ + 1 entries: the last is the ring's seam, followed by the oldest
  std::vector<std::int32_t> tokens_;   // [total, block_size]
  std::vector<BlockId> buckets_;       // first block of each bucket; size is a power of two
  std::vector<int> extra_references_;  // [group]
  KvEventLog* log_ = nullptr;
  BlockObserver* observer_ = nullptr;
};

}  // namespace octavo
