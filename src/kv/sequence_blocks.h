// The blocks of one sequence: for each cache group, a table from position to block.
#pragma once

#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "kv/prefix_match.h"

namespace octavo {

class SequenceBlocks {
 public:
  SequenceBlocks() = default;

  // Allocates the tables for max_tokens tokens; later calls allocate no memory. The cache must outlive this
  // object.
  SequenceBlocks(KvCache& cache, int max_tokens);

  // Returns the table of a group: position p is in block table(group)[p / block_size]; kNoBlock: later
  // positions do not attend to the block.
  std::span<const BlockId> table(int group) const { return groups_[static_cast<std::size_t>(group)].table; }

  // Returns the number of blocks in the tables, over all groups.
  int held() const;
  std::size_t bytes() const;  // returns the size of the tables in bytes

  // Starts an empty sequence with a prefix that find_prefix has just found.
  void adopt(const PrefixMatch& match);

  // Returns the number of blocks to allocate for the positions up to `end`, over all groups.
  int missing(int end) const;

  // Returns the maximum number of blocks that must still be allocated until the sequence has `end` tokens.
  // ahead: see KvCache::peak_blocks.
  int growth(int end, int ahead) const;

  // Returns growth() of an empty sequence that starts with the match.
  static int growth_after(const KvCache& cache, const PrefixMatch& match, int end, int ahead);

  // Allocates the missing blocks. If there are too few free blocks, it changes nothing and returns false.
  bool reserve(int end);

  // For a prefix that is loaded from another engine or tier: allocates the blocks to which positions from
  // `end` on attend, and frees window blocks before them. If there are too few free blocks, it changes
  // nothing and returns false.
  bool reserve_prefix(int end);
  // Returns the number of blocks that reserve_prefix() allocates after adopt(match).
  static int missing_of_prefix(const KvCache& cache, const PrefixMatch& match, int end);

  // Publishes the full blocks among the first `computed` positions, so that other sequences find them.
  void publish(int computed, const BlockHistory& history);
  int published() const { return published_; }  // number of published blocks
  PrefixId tip() const { return tip_; }         // content of the published blocks

  // Releases the blocks to which positions from `computed` on do not attend.
  void leave_window(int computed);

  // Appends all blocks to `out`, which takes over the references. The blocks of the last positions come
  // first, so that a prefix is evicted after the blocks that follow it.
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
