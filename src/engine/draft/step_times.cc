#include "engine/draft/step_times.h"

#include <algorithm>

namespace octavo {

// A step sometimes waits for other programs, so a measurement counts as at most four times the mean.
void StepTimes::note(int tokens, std::int64_t ns) {
  if (tokens < 1 || tokens > kTokensMost || ns <= 0) return;
  std::int64_t& mean = ns_[static_cast<std::size_t>(tokens)];
  mean = mean == 0 ? ns : mean + (std::min(ns, 4 * mean) - mean) / 8;
}

std::int64_t StepTimes::of(int tokens) const {
  const auto at = [this](int n) { return ns_[static_cast<std::size_t>(n)]; };
  int below = std::min(tokens, kTokensMost), above = std::max(tokens, 1);
  while (below > 0 && at(below) == 0) --below;
  while (above <= kTokensMost && at(above) == 0) ++above;
  if (below <= 0) return above <= kTokensMost ? at(above) : 0;
  if (above > kTokensMost || above == below) return at(below);
  return at(below) + (at(above) - at(below)) * (tokens - below) / (above - below);
}

}  // namespace octavo
