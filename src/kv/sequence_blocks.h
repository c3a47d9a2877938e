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

  // Allocates the tables for max_tokens tokens; nothing is allocated later. The cache must outlive this.
  SequenceBlocks(KvCache& cache, int max_tokens);

  // table(g)[p / block_size] holds position p; kNoBlock where the group's window has passed.
  std::span<const BlockId> table(int group) const { return groups_[static_cast<std::size_t>(group)].table; }

  std::size_t bytes() const;  // size of the tables

  // Starts an empty sequence with a prefix that find_prefix has just found.
  void adopt(const PrefixMatch& match);

  // Number of new blocks that positions up to `end` need, over all groups.
  int missing(int end) const;

  // Maximum number of blocks still to allocate until the sequence is `end` long; see KvCache::peak_blocks.
  int growth(int end, int ahead) const;

  // growth() of an empty sequence that would adopt the match.
  static int growth_after(const KvCache& cache, const PrefixMatch& match, int end, int ahead);

  // Allocates the missing blocks. False: not enough, and nothing changed.
  bool reserve(int end);

  // For a prefix that is loaded from elsewhere: allocates the blocks that positions from `end` on attend to,
  // and frees window blocks before them. False: not enough, and nothing changed.
  bool reserve_prefix(int end);
  // Number of blocks that reserve_prefix() allocates after a match.
  static int missing_of_prefix(const KvCache& cache, const PrefixMatch& match, int end);

  // Lets others find the full blocks among the first `computed` positions.
  void publish(int computed, const BlockHistory& history);
  int published() const { return published_; }  // blocks
  PrefixId tip() const { return tip_; }         // their content

  // Releases the blocks that no position from `computed` on attends to.
  void leave_window(int computed);

  // Appends all blocks to `out` and hands over their references, last positions first, so that a prefix is
  // evicted after what follows it.
  void give_up(std::vector<BlockId>& out);

 private:
  struct Group {
    std::vector<BlockId> table;
    int passed = 0;  // blocks at the front that the window has passed
  };

  void pass(Group& group, int first);  // releases its blocks before `first`

  KvCache* cache_ = nullptr;
  std::vector<Group> groups_;
  int published_ = 0;
  PrefixId tip_ = kEmptyPrefix;  // content of the published blocks
};

}  // namespace octavo
