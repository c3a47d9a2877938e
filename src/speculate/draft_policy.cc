#include "speculate/draft_policy.h"

#include <algorithm>

namespace octavo {

int DraftPolicy::limit(int sequences) const {
  for (const auto& [from, to, tokens] : options_.per_batch_size)
    if (sequences >= from && sequences <= to) return tokens;
  if (!options_.per_batch_size.empty() || options_.free_tokens == 0) return options_.most;
  return std::clamp(options_.free_tokens / std::max(sequences, 1) - 1, 0, options_.most);
}

int DraftPolicy::count(int sequences, Acceptance& acceptance) const {
  const int most = limit(sequences);
  if (!options_.by_acceptance || most == 0) return most;
  // Below this, the work for a draft token is worth more than the chance of its being accepted.
  constexpr int kLeastLikely = Acceptance::kOne / 4;
  int count = 0;
  for (int likely = acceptance.rate(); count < most && likely >= kLeastLikely; ++count)
    likely = likely * acceptance.rate() / Acceptance::kOne;
  if (count == 0 && ++acceptance.undrafted_ >= kProbeEvery) count = 1;
  if (count > 0) acceptance.undrafted_ = 0;
  return count;
}

}  // namespace octavo
