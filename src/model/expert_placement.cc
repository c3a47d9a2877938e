#include "model/expert_placement.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace octavo {
namespace {

// Returns the number of slots for each expert: busy experts get several.
std::vector<int> count_slots(std::span<const double> loads, std::size_t slots, int ranks) {
  std::vector<int> counts(loads.size(), 1);
  const auto share = [&](std::size_t e) { return loads[e] / counts[e]; };
  for (std::size_t given = loads.size(); given < slots; ++given) {
    std::size_t best = loads.size();
    for (std::size_t e = 0; e < loads.size(); ++e)
      if (counts[e] < ranks && (best == loads.size() || share(e) > share(best))) best = e;
    ++counts[best];
  }
  return counts;
}

std::vector<std::vector<std::int32_t>> pack(std::span<const double> loads, std::size_t slots, int ranks) {
  const std::vector<int> counts = count_slots(loads, slots, ranks);
  std::vector<std::int32_t> order;
  for (std::size_t e = 0; e < loads.size(); ++e)
    order.insert(order.end(), static_cast<std::size_t>(counts[e]), static_cast<std::int32_t>(e));
  const auto share = [&](std::int32_t e) {
    const auto i = static_cast<std::size_t>(e);
    return loads[i] / counts[i];
  };
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) { return share(a) > share(b); });

  const auto count = static_cast<std::size_t>(ranks);
  std::vector<std::vector<std::int32_t>> packs(count);
  std::vector<double> weights(count, 0);
  for (const std::int32_t e : order) {
    std::size_t best = count;
    bool best_has_it = false;
    for (std::size_t rank = 0; rank < count; ++rank) {
      const int r = static_cast<int>(rank);
      const auto all = static_cast<std::int64_t>(slots);
      if (std::ssize(packs[rank]) == first_slot(all, ranks, r + 1) - first_slot(all, ranks, r)) continue;
      const bool has_it = std::ranges::find(packs[rank], e) != packs[rank].end();
      if (best < count && (has_it != best_has_it ? has_it : weights[rank] >= weights[best])) continue;
      best = rank;
      best_has_it = has_it;
    }
    packs[best].push_back(e);
    weights[best] += share(e);
  }
  return packs;
}

}  // namespace

ExpertPlacement first_placement(int experts, int redundant) {
  ExpertPlacement placement(static_cast<std::size_t>(experts + redundant));
  for (std::size_t i = 0; i < placement.size(); ++i)
    placement[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(experts));
  return placement;
}

ExpertPlacement balanced_placement(std::span<const double> loads, const ExpertPlacement& now, int ranks) {
  CHECK(now.size() >= loads.size() && now.size() <= loads.size() * static_cast<std::size_t>(ranks));
  std::vector<std::vector<std::int32_t>> packs = pack(loads, now.size(), ranks);
  constexpr std::int32_t kNone = -1;
  ExpertPlacement next(now.size(), kNone);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::int32_t>& own = packs[static_cast<std::size_t>(rank)];
    const auto first = static_cast<std::size_t>(first_slot(std::ssize(now), ranks, rank));
    const std::size_t end = first + own.size();
    for (std::size_t slot = first; slot < end; ++slot) {
      const auto stays = std::ranges::find(own, now[slot]);
      if (stays == own.end()) continue;
      next[slot] = *stays;
      own.erase(stays);
    }
    for (std::size_t slot = first; slot < end; ++slot) {
      if (next[slot] != kNone) continue;
      next[slot] = own.front();
      own.erase(own.begin());
    }
  }
  return next;
}

std::vector<double> rank_loads(std::span<const double> loads, const ExpertPlacement& placement, int ranks) {
  std::vector<double> shares(loads.begin(), loads.end());
  for (std::size_t e = 0; e < shares.size(); ++e)
    shares[e] /= static_cast<double>(std::ranges::count(placement, static_cast<std::int32_t>(e)));
  std::vector<double> sums(static_cast<std::size_t>(ranks), 0);
  for (int rank = 0; rank < ranks; ++rank)
    for (std::int64_t slot = first_slot(std::ssize(placement), ranks, rank);
         slot < first_slot(std::ssize(placement), ranks, rank + 1); ++slot)
      sums[static_cast<std::size_t>(rank)] +=
          shares[static_cast<std::size_t>(placement[static_cast<std::size_t>(slot)])];
  return sums;
}

double balancedness(std::span<const double> rank_loads) {
  const double most = *std::ranges::max_element(rank_loads);
  if (most <= 0) return 1;
  return std::accumulate(rank_loads.begin(), rank_loads.end(), 0.0) /
         (most * static_cast<double>(rank_loads.size()));
}

}  // namespace octavo
