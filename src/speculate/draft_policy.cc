#include "speculate/draft_policy.h"

#include <algorithm>

namespace octavo {
namespace {

// Below this, the work for a draft token is worth more than the chance of its being accepted.
constexpr int kLeastLikely = Acceptance::kOne / 4;

}  // namespace

// One that is tried and accepted is followed by others at once: a text that begins to repeat itself goes on so.
void Acceptance::note(bool came_true) {
  is_new_ = false;
  rate_ += ((came_true ? kOne : 0) - rate_) / 8;
  if (!came_true) return;
  wait_ = kProbeEvery;
  rate_ = std::max(rate_, kLeastLikely + kOne / 8);
}

void DraftPolicy::note(Acceptance& acceptance, bool came_true) {
  acceptance.note(came_true);
  rate_of_all_ += ((came_true ? Acceptance::kOne : 0) - rate_of_all_) / 64;
}

int DraftPolicy::limit(int sequences) const {
  for (const auto& [from, to, tokens] : options_.per_batch_size)
    if (sequences >= from && sequences <= to) return tokens;
  if (!options_.per_batch_size.empty() || options_.free_tokens == 0) return options_.most;
  return std::clamp(options_.free_tokens / std::max(sequences, 1) - 1, 0, options_.most);
}

int DraftPolicy::most_of_step(int sequences) const {
  int most = 0;
  for (int n = 1; n <= sequences; ++n) most = std::max(most, n * limit(n));
  return most;
}

bool DraftPolicy::may_want(int sequences, const Acceptance& acceptance, int steps) const {
  if (limit(sequences) == 0) return false;
  const int rate = acceptance.is_new_ ? rate_of_all_ : acceptance.rate_;
  return !options_.by_acceptance || rate >= kLeastLikely || acceptance.undrafted_ + steps >= acceptance.wait_;
}

int DraftPolicy::count(int sequences, Acceptance& acceptance) const {
  const int most = limit(sequences);
  if (!options_.by_acceptance || most == 0) return most;
  if (acceptance.is_new_) acceptance.rate_ = rate_of_all_;
  int count = 0;
  for (int likely = acceptance.rate(); count < most && likely >= kLeastLikely; ++count)
    likely = likely * acceptance.rate() / Acceptance::kOne;
  if (count == 0 && ++acceptance.undrafted_ >= acceptance.wait_) {
    count = 1;
    acceptance.wait_ = std::min(2 * acceptance.wait_, Acceptance::kProbeEveryMost);
  }
  if (count > 0) acceptance.undrafted_ = 0;
  return count;
}

}  // namespace octavo
