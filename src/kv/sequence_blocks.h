// The blocks of one sequence: a table from position to block for each cache group.
#pragma once

#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "kv/prefix_match.h"

namespace octavo {

class SequenceBlocks {
 public:
  SequenceBlocks() = default;

  // Allocates the tables for max_tokens tokens; nothing is allocated later. The cache must outlive this
  // object.
  SequenceBlocks(KvCache& cache, int max_tokens);

  // Position p is in block table(g)[p / block_size]; kNoBlock: no later position attends to the block.
  std::span<const BlockId> table(int group) const { return groups_[static_cast<std::size_t>(group)].table; }

  std::size_t bytes() const;  // size of the tables

  // Starts an empty sequence with a prefix that find_prefix has just found.
  void adopt(const PrefixMatch& match);

  // Number of blocks to allocate for the positions up to `end`, over all groups.
  int missing(int end) const;

  // Maximum number of blocks that must still be allocated until the sequence has `end` tokens. ahead:
  // see KvCache::peak_blocks.
  int growth(int end, int ahead) const;

  // growth() of an empty sequence that starts with the match.
  static int growth_after(const KvCache& cache, const PrefixMatch& match, int end, int ahead);

  // Allocates the missing blocks. False, and nothing changes: there are too few free blocks.
  bool reserve(int end);

  // For a prefix that is loaded from elsewhere: allocates the blocks that positions from `end` on attend
  // to, and frees window blocks before them. False, and nothing changes: there are too few free blocks.
  bool reserve_prefix(int end);
  // Number of blocks that reserve_prefix() allocates after adopt(match).
  static int missing_of_prefix(const KvCache& cache, const PrefixMatch& match, int end);

  // Lets other sequences find the full blocks among the first `computed` positions.
  void publish(int computed, const BlockHistory& history);
  int published() const { return published_; }  // number of blocks
  PrefixId tip() const { return tip_; }         // content of the published blocks

  // Releases the blocks that no position from `computed` on attends to.
  void leave_window(int computed);

  // Appends all blocks to `out`, which takes over the references. Last positions come first, so that a
  // prefix is evicted after the blocks that follow it.
  void give_up(std::vector<BlockId>& out);

 private:
  struct Group {
    std::vector<BlockId> table;
    int passed = 0;  // number of leading blocks that the window has passed
  };

  void pass(Group& group, int first);  // releases the group's blocks before `first`

  KvCache* cache_ = nullptr;
  std::vector<Group> groups_;
  int published_ = 0;
  PrefixId tip_ = kEmptyPrefix;  // content of the published blocks
};

}  // namespace octavo
