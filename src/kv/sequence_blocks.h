// The blocks of one sequence: a table per cache group, from position to block.
#pragma once

#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "kv/prefix_match.h"

namespace octavo {

class SequenceBlocks {
 public:
  SequenceBlocks() = default;

  // Room for the tables of max_tokens tokens is made here, and none later. The cache must outlive this.
  SequenceBlocks(KvCache& cache, int max_tokens);

  // table(g)[p / block_size] holds position p; kNoBlock where the group's window has passed.
  std::span<const BlockId> table(int group) const { return groups_[static_cast<std::size_t>(group)].table; }

  std::size_t bytes() const;  // of the tables

  // Starts the empty sequence with a prefix that find_prefix found just now.
  void adopt(const PrefixMatch& match);

  // New blocks that positions up to `end` ask for, all groups together.
  int missing(int end) const;

  // The most blocks that are still to be taken until the sequence is `end` long; see KvCache::peak_blocks.
  int growth(int end, int ahead) const;

  // The same for an empty sequence that would adopt the match.
  static int growth_after(const KvCache& cache, const PrefixMatch& match, int end, int ahead);

  // Takes the missing blocks, or changes nothing and says no.
  bool reserve(int end);

  // Takes the blocks that positions from `end` on see of those before it, and gives up the others of windows: a
  // prefix that comes from elsewhere. Or changes nothing and says no.
  bool reserve_prefix(int end);
  // How many it takes behind a match.
  static int missing_of_prefix(const KvCache& cache, const PrefixMatch& match, int end);

  // Makes the full blocks among the first `computed` positions findable by others.
  void publish(int computed, const BlockHistory& history);
  int published() const { return published_; }  // blocks
  PrefixId tip() const { return tip_; }         // their content

  // Releases the blocks that no position from `computed` on sees any more.
  void leave_window(int computed);

  // Gives all blocks up, last positions first (so that tails are evicted before what they continue),
  // appending them to `out`: the references go over to the caller.
  void give_up(std::vector<BlockId>& out);

 private:
  struct Group {
    std::vector<BlockId> table;
    int passed = 0;  // blocks at the front that the window has left
  };

  void pass(Group& group, int first);  // releases its blocks before that one

  KvCache* cache_ = nullptr;
  std::vector<Group> groups_;
  int published_ = 0;
  PrefixId tip_ = kEmptyPrefix;  // content of the published blocks
};

}  // namespace octavo
