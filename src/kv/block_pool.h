// The blocks of the paged KV cache, as numbers: who uses which, and what the unused ones still remember.
//
// Paged attention and reference-counted sharing follow Kwon et al., "Efficient Memory Management for Large
// Language Model Serving with PagedAttention" (SOSP 2023). A block nobody uses keeps its content until it is
// taken again, the least recently used first: the idle pool is the prefix cache.
//
// Everything is allocated by the constructor. All operations are O(1), but for a walk along the few blocks of
// one hash bucket.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/events.h"

namespace octavo {

using BlockId = std::int32_t;
inline constexpr BlockId kNoBlock = -1;

// Stands for one distinct content "these blocks of tokens from the very first on". Given out by the pool and
// never twice, so that two blocks with equal PrefixId hold the same tokens after the same past, whatever
// their hashes say.
using PrefixId = std::uint64_t;
inline constexpr PrefixId kEmptyPrefix = 0;           // before the first block
inline constexpr PrefixId kAnyPrefix = ~PrefixId{0};  // in a search: not known

// What a full block holds.
struct BlockContent {
  int group = 0;                   // the cache group whose layers wrote it
  Hash128 key = {};                // chained hash of all tokens up to the block's end
  Hash128 extra = {};              // what else changes the content or who may share it: CacheIdentity, images
  PrefixId parent = kEmptyPrefix;  // the content of all blocks before this one
  std::span<const std::int32_t> tokens;  // block_size of them
  Hash128 parent_key = {};  // of the block before it, zero for the first; only told, never compared
};

class BlockPool {
 public:
  // group_count: cache groups that draw from the pool, for extra_references().
  BlockPool(int num_blocks, int block_size, int group_count);

  int block_size() const { return block_size_; }
  int total() const { return total_; }
  int free() const { return free_; }           // in use by nobody, remembered ones included
  int cached() const { return cached_free_; }  // of the free ones: those that remember a content
  int used() const { return total_ - free_; }

  // Takes the free block that is cheapest to lose: a blank one, else the least recently used. One must be
  // free.
  BlockId allocate(int group);

  // One user more of a block, in use or free.
  void acquire(BlockId block);

  // One user less. The last one leaves it free, its content remembered.
  void release(BlockId block);

  // A block that holds this content, or kNoBlock. Equal hashes are not believed: tokens, extra and parent are
  // compared. With parent == kAnyPrefix the past is taken on the word of the 128-bit key.
  BlockId find(const BlockContent& content) const;

  // Hint that find() of this content comes soon.
  void prefetch(int group, Hash128 key) const;

  // Gives a block in use its content, to be found from now on. A second block of the same content is fine.
  void remember(BlockId block, const BlockContent& content, PrefixId prefix);

  PrefixId new_prefix() { return ++last_prefix_; }
  PrefixId prefix(BlockId block) const { return blocks_[at(block)].prefix; }
  PrefixId parent(BlockId block) const { return blocks_[at(block)].parent; }
  int references(BlockId block) const { return blocks_[at(block)].references; }

  // Users beyond the first, over all blocks of the group: what its sharers hold more than there is.
  int extra_references(int group) const { return extra_references_[static_cast<std::size_t>(group)]; }

  // Forgets every content, also that of blocks in use.
  void reset();

  // From now on the log, which must outlive this, learns of every content that comes and goes: of equal ones
  // the first and the last.
  void tell(KvEventLog& log) { log_ = &log; }

  // Where the log has lost events: tells all contents anew once it has room. Otherwise nothing.
  void tell_all();

  // Walks everything and CHECKs that counts, lists and buckets agree. Linear; for tests and fuzzers.
  void check() const;

 private:
  struct Block {
    Hash128 key;
    Hash128 extra;
    Hash128 parent_key;
    PrefixId prefix = kEmptyPrefix;  // of this block's own content; kEmptyPrefix: blank
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
  std::vector<Block> blocks_;          // one more than total_: the last is the ring's seam, oldest after it
  std::vector<std::int32_t> tokens_;   // [total, block_size]
  std::vector<BlockId> buckets_;       // first block of each; a power of two of them
  std::vector<int> extra_references_;  // [group]
  KvEventLog* log_ = nullptr;
};

}  // namespace octavo
