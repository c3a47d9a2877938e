// Functions that all pickers use.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "fleet/decide/decision.h"
#include "fleet/decide/draws.h"
#include "fleet/decide/parameters.h"

namespace octavo::fleet {

template <class Made>
std::unique_ptr<Made> make_picker(Parameters& parameters) {
  auto picker = std::make_unique<Made>();
  parameters.read("maxNumOfEndpoints", picker->endpoints_max, 1, 100);
  return picker;
}

inline void shuffle(std::vector<Score>& ranking, Draws& draws) {
  for (std::size_t i = ranking.size(); i > 1; --i) std::swap(ranking[i - 1], ranking[draws.below(i)]);
}

// Sorts by score, best first. Endpoints with equal scores are in random order.
inline void sort_by_score(std::vector<Score>& ranking, Draws& draws) {
  shuffle(ranking, draws);
  std::ranges::sort(ranking, std::ranges::greater(), &Score::total);
}

}  // namespace octavo::fleet
