// Gives low values high scores: the score of the value x is (most - x) / (most - least), where `most` and
// `least` are the extreme values. If all values are equal, all scores are 1.
#pragma once

#include <algorithm>
#include <span>

#include "fleet/decide/cycle.h"

namespace octavo::fleet {

template <class Amount>
void score_least(std::span<const Member* const> candidates, std::span<double> scores, Amount amount) {
  for (std::size_t i = 0; i < candidates.size(); ++i) scores[i] = static_cast<double>(amount(*candidates[i]));
  if (scores.empty()) return;
  const auto [least, most] = std::ranges::minmax(scores);
  for (double& s : scores) s = most > least ? (most - s) / (most - least) : 1.0;
}

}  // namespace octavo::fleet
