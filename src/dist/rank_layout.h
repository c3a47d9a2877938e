// Partition of a model among an engine's ranks: stages of layers (pipeline parallel), and parts of every
// layer (tensor parallel).
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "dist/process_group.h"

namespace octavo {

struct RankLayout {
  int tensor = 1;    // ranks that share every layer of a stage
  int pipeline = 1;  // stages

  int size() const { return tensor * pipeline; }
  // Rank 0 schedules and samples. It is in the last stage, where the logits are.
  int stage(int rank) const { return pipeline - 1 - rank / tensor; }
  int part(int rank) const { return rank % tensor; }

  // The ranks of every group: all ranks; each stage; each rank of a stage with its counterpart in the next
  // stage.
  std::vector<std::vector<int>> groups() const;
};

// The groups of one rank.
struct RankGroups {
  std::unique_ptr<ProcessGroup> all;
  std::unique_ptr<ProcessGroup> tensor;  // null: the rank has whole layers
  // Rank 0 of these groups sends. Null: the first stage has no previous one, the last has no next one.
  std::unique_ptr<ProcessGroup> from_stage_before, to_stage_behind;
  // The ranks of all engines that share experts. Null: the experts are those of one engine.
  std::unique_ptr<ProcessGroup> experts;

  // The first failure of any group.
  Result<> status() const;
  void set_timeout_ms(int ms);
  // The groups that are not null.
  std::vector<ProcessGroup*> list() const;
};

// make(index, members): a group of RankLayout::groups().
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
