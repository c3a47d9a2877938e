// Partition of a model among an engine's ranks. With pipeline parallelism, each stage has some of the
// layers. With tensor parallelism, each rank has a part of every layer of its stage.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "dist/process_group.h"

namespace octavo {

struct RankLayout {
  int tensor = 1;  // number of ranks in a stage, which share every layer of the stage
  int pipeline = 1;

  int size() const { return tensor * pipeline; }
  // Rank 0 schedules and samples. It is in the last stage, which computes the logits.
  int stage(int rank) const { return pipeline - 1 - rank / tensor; }
  int part(int rank) const { return rank % tensor; }

  // Returns the ranks of each group, in this order:
  // - the group of all ranks;
  // - a group for each stage;
  // - a group for each pair of ranks that have the same part() in adjacent stages.
  std::vector<std::vector<int>> groups() const;
};

struct RankGroups {
  std::unique_ptr<ProcessGroup> all;
  std::unique_ptr<ProcessGroup> tensor;  // null: each rank has complete layers
  // Groups of two ranks in adjacent stages, in which the earlier stage is rank 0 and sends.
  // from_stage_before is null in the first stage, and to_stage_behind is null in the last stage.
  std::unique_ptr<ProcessGroup> from_stage_before, to_stage_behind;
  // Ranks of all engines that share experts; null if experts are not shared.
  std::unique_ptr<ProcessGroup> experts;

  // Returns the first failure of any of these groups.
  Result<> status() const;
  void set_timeout_ms(int ms);
  // Returns the groups that are not null.
  std::vector<ProcessGroup*> list() const;
};

// make(index, members) must create group `index` of RankLayout::groups().
template <class Make>
RankGroups make_groups(const RankLayout& layout, int rank, const Make& make) {
  RankGroups groups;
  const std::vector<std::vector<int>> all = layout.groups();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<int>& members = all[i];
    if (std::ranges::find(members, rank) == members.end()) continue;
    if (i == 0)
      groups.all = make(i, members);
    else if (layout.stage(members.front()) == layout.stage(members.back()))
      groups.tensor = make(i, members);
    else if (members.front() == rank)
      groups.to_stage_behind = make(i, members);
    else
      groups.from_stage_before = make(i, members);
  }
  return groups;
}

}  // namespace octavo
