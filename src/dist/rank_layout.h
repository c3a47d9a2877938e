// How the ranks of one engine divide its model among them: stages of layers, and in each stage parts of every
// layer.
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
  // Rank 0, which schedules and samples, is in the last stage, and has the logits at hand.
  int stage(int rank) const { return pipeline - 1 - rank / tensor; }
  int part(int rank) const { return rank % tensor; }

  // The ranks of every group that there is: all; those of a stage; one of a stage and its counterpart in the
  // next.
  std::vector<std::vector<int>> groups() const;
};

// The groups that a rank belongs to.
struct RankGroups {
  std::unique_ptr<ProcessGroup> all;
  std::unique_ptr<ProcessGroup> tensor;  // null: it has its layers for itself
  // Their rank 0 sends. Null: this is the first stage, the last.
  std::unique_ptr<ProcessGroup> from_stage_before, to_stage_behind;

  // The first failure of any of them.
  Result<> status() const;
  void set_timeout_ms(int ms);
  // Those that are there.
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
