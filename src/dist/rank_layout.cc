#include "dist/rank_layout.h"

namespace octavo {

std::vector<std::vector<int>> RankLayout::groups() const {
  std::vector<std::vector<int>> groups(1);
  for (int rank = 0; rank < size(); ++rank) groups[0].push_back(rank);
  for (int first = 0; first < size() && tensor > 1; first += tensor) {
    std::vector<int>& stage_ranks = groups.emplace_back();
    for (int i = 0; i < tensor; ++i) stage_ranks.push_back(first + i);
  }
  for (int rank = tensor; rank < size(); ++rank) groups.push_back({rank, rank - tensor});
  return groups;
}

std::vector<ProcessGroup*> RankGroups::list() const {
  std::vector<ProcessGroup*> groups_here;
  for (const auto* group : {&all, &tensor, &from_stage_before, &to_stage_behind, &experts})
    if (*group) groups_here.push_back(group->get());
  return groups_here;
}

Result<> RankGroups::status() const {
  for (const ProcessGroup* group : list()) TRY_VOID(group->status());
  return {};
}

void RankGroups::set_timeout_ms(int ms) {
  for (ProcessGroup* group : list()) group->set_timeout_ms(ms);
}

}  // namespace octavo
