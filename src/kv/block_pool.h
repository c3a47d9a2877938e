// Block numbers of the paged KV cache: the users of each block, and the cached content of unused blocks.
//
// Paged attention and reference-counted sharing follow Kwon et al., "Efficient Memory Management for Large
// Language Model Serving with PagedAttention" (SOSP 2023). An unused block keeps its content until the block
// is allocated again, least recently used first. So the free blocks are the prefix cache.
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

// Id of a content: the tokens of a block and of all blocks before it. The pool uses each id once, so two
// blocks with the same id have the same tokens after the same prefix, even if their hashes collide.
using PrefixId = std::uint64_t;
inline constexpr PrefixId kEmptyPrefix = 0;           // id of the empty prefix, before the first block
inline constexpr PrefixId kAnyPrefix = ~PrefixId{0};  // in a search: the prefix before the block is unknown

struct BlockContent {
  int group = 0;       // index of the cache group whose layers wrote the block
  Hash128 key = {};    // chained hash of all tokens up to the block's end
  Hash128 extra = {};  // hash of other inputs that the content depends on: CacheIdentity, images
  PrefixId parent = kEmptyPrefix;        // id of the content of all blocks before this one
  std::span<const std::int32_t> tokens;  // block_size tokens
  Hash128 parent_key = {};               // key of the previous block, zero for the first; never compared
};

// Receives changes to blocks.
class BlockObserver {
 public:
  virtual void allocated(BlockId) {}
  virtual void acquired(BlockId) {}                                   // the block has one more user
  virtual void released(BlockId) {}                                   // the block has no users any more
  virtual void remembered(BlockId, const BlockContent&, PrefixId) {}  // see BlockPool::remember
  virtual void evicted(BlockId) {}  // the content of the block is removed; allocated() follows
  virtual void cleared() {}

 protected:
  ~BlockObserver() = default;
};

class BlockPool {
 public:
  // group_count: number of cache groups that use the pool.
  BlockPool(int num_blocks, int block_size, int group_count);

  int block_size() const { return block_size_; }
  int total() const { return total_; }
  int free() const { return free_; }           // number of blocks without users, including cached ones
  int cached() const { return cached_free_; }  // number of free blocks with cached content
  int used() const { return total_ - free_; }

  // Returns a free block, which must exist: an empty one or, if all have content, the least recently used.
  BlockId allocate(int group);

  // Adds a user to a block that is in use or free.
  void acquire(BlockId block);

  // Removes a user. The last one frees the block; its content stays cached.
  void release(BlockId block);

  // Returns a block with this content, or kNoBlock. It compares tokens, extra and parent, not only hashes. If
  // parent == kAnyPrefix, only the 128-bit key identifies the prefix before the block.
  BlockId find(const BlockContent& content) const;

  // Prefetches the memory that find() reads for this content. Call it shortly before find().
  void prefetch(int group, Hash128 key) const;

  // Sets the content of a block in use, so that find() returns it. Several blocks may have the same content.
  void remember(BlockId block, const BlockContent& content, PrefixId prefix);

  // Gives a free block without content the content that it had in an earlier process. It becomes the most
  // recently used block. Prefix ids of this process are higher than those of all restored blocks.
  void restore(BlockId block, const BlockContent& content, PrefixId prefix);

  PrefixId new_prefix() { return ++last_prefix_; }
  PrefixId prefix(BlockId block) const { return blocks_[at(block)].prefix; }
  PrefixId parent(BlockId block) const { return blocks_[at(block)].parent; }
  int references(BlockId block) const { return blocks_[at(block)].references; }

  // Returns the number of users beyond the first, summed over all blocks of the group: the number of blocks
  // that sharing saves.
  int extra_references(int group) const { return extra_references_[static_cast<std::size_t>(group)]; }

  // Removes every content, including the content of blocks in use.
  void reset();

  // Logs every content that appears or disappears from now on. If several blocks have the same content, only
  // the first to appear and the last to disappear are logged. The log must outlive this object.
  void tell(KvEventLog& log) { log_ = &log; }

  // Notifies the observer from now on; it must outlive this object.
  void observe(BlockObserver& observer) { observers_.push_back(&observer); }

  // If the log has lost events, logs all contents again as soon as the log has room.
  void tell_all();

  // CHECKs that counts, lists and buckets agree. It takes linear time; for tests and fuzzers.
  void check() const;

 private:
  struct Block {
    Hash128 key;
    Hash128 extra;
    Hash128 parent_key;
    PrefixId prefix = kEmptyPrefix;  // id of the block's content; kEmptyPrefix: no content
    PrefixId parent = kEmptyPrefix;
    std::int32_t references = 0;
    std::int32_t group = 0;
    BlockId older = kNoBlock;  // neighbour in the ring of free blocks
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
  std::vector<Block> blocks_;          // total_ + 1 entries; the last one closes the ring of free blocks
  std::vector<std::int32_t> tokens_;   // [total, block_size]
  std::vector<BlockId> buckets_;       // first block of each bucket; size is a power of two
  std::vector<int> extra_references_;  // per group
  KvEventLog* log_ = nullptr;
  std::vector<BlockObserver*> observers_;
};

}  // namespace octavo
