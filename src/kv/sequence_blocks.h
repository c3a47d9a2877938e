// The blocks of one sequence. For each cache group, a table maps positions to blocks.
#pragma once

#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "kv/prefix_match.h"

namespace octavo {

class SequenceBlocks {
 public:
  SequenceBlocks() = default;

  // Allocates tables for max_tokens tokens, so later calls allocate no memory. The cache must outlive this
  // object.
  SequenceBlocks(KvCache& cache, int max_tokens);

  // Returns the block table of a group. Position p is in block table(group)[p / block_size]. The entry is
  // kNoBlock if no later position attends to the block.
  std::span<const BlockId> table(int group) const { return groups_[static_cast<std::size_t>(group)].table; }

  // Returns the number of blocks that the sequence has in all groups.
  int held() const;
  std::size_t bytes() const;  // memory of the tables

  // Adds the blocks of a cached prefix to an empty sequence. `match` must still be valid.
  void adopt(const PrefixMatch& match);

  int missing(int end) const;

  // Returns the maximum number of blocks that must still be allocated until the sequence has `end` tokens.
  // For `ahead`, see KvCache::peak_blocks.
  int growth(int end, int ahead) const;

  // Returns the value that growth() has after adopt(match) on an empty sequence.
  static int growth_after(const KvCache& cache, const PrefixMatch& match, int end, int ahead);

  // Allocates the missing blocks for positions up to `end`. If there are too few free blocks, changes
  // nothing and returns false.
  bool reserve(int end);

  // Prepares a prefix that another engine or cache tier will load. Allocates the blocks to which positions
  // from `end` on attend, and frees earlier blocks of sliding-window groups. If there are too few free
  // blocks, changes nothing and returns false.
  bool reserve_prefix(int end);
  static int missing_of_prefix(const KvCache& cache, const PrefixMatch& match, int end);

  // Makes the full blocks of the first `computed` positions available to other sequences.
  void publish(int computed, const BlockHistory& history);
  int published() const { return published_; }
  PrefixId tip() const { return tip_; }         // content of the published blocks

  // Releases the blocks to which no position from `computed` on attends.
  void leave_window(int computed);

  // Moves all blocks to `out`, with their references. Blocks of later positions come first, so that they
  // are evicted before the prefix that they need.
  void give_up(std::vector<BlockId>& out);

  // Moves the blocks from index `blocks` on to `out`, later positions first. Only for published blocks of
  // groups with full attention. Nothing may be published afterwards, because tip() is unknown.
  void shorten(int blocks, std::vector<BlockId>& out);

 private:
  struct Group {
    std::vector<BlockId> table;
    int passed = 0;  // number of leading blocks to which no later position attends
  };

  void pass(Group& group, int first);  // releases the blocks before index `first`

  KvCache* cache_ = nullptr;
  std::vector<Group> groups_;
  int published_ = 0;
  PrefixId tip_ = kEmptyPrefix;  // content of the published blocks
};

}  // namespace octavo
