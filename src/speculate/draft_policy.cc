#include "speculate/draft_policy.h"

#include <algorithm>

namespace octavo {
namespace {

// Without times: below this, the work for a draft token is worth more than the chance of its being accepted.
constexpr int kLeastLikely = Acceptance::kOne / 4;
// Of a step's time: what draft tokens are to gain at least, as all that goes into the sum is an estimate.
constexpr int kLeastGain = 64;
// Of all time: what tries may take.
constexpr int kShareOfTries = 256;
constexpr int kDraftsOfMean = 128;

}  // namespace

void Acceptance::note(bool came_true) {
  is_new_ = false;
  rate_ += ((came_true ? kOne : 0) - rate_) / 16;
  // A text that begins to repeat itself goes on so: the next try follows at once, until the rate tells.
  if (came_true && rate_ < kOne / 2) try_in_ = 1;
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

// What is gained if all sequences have as many: for each that is accepted, its share of a step. What it costs: the
// longer step and the proposer's time.
int DraftPolicy::worthwhile(int sequences, const Acceptance& acceptance) const {
  constexpr std::int64_t kOne = Acceptance::kOne;
  const int most = limit(sequences);
  if (!options_.by_acceptance) return most;
  const std::int64_t rate = acceptance.is_new_ ? rate_of_all_ : acceptance.rate_;
  const std::int64_t step = times_.of(sequences);
  std::int64_t likely = kOne, accepted = 0, best_gain = step / kLeastGain;
  int best = 0;
  for (int count = 1; count <= most; ++count) {
    likely = likely * rate / kOne;
    accepted += likely;
    if (step == 0) {
      if (likely < kLeastLikely) break;
      best = count;
      continue;
    }
    const std::int64_t longer = std::max<std::int64_t>(0, times_.of(sequences * (1 + count)) - step);
    const std::int64_t gain = step * accepted / kOne - longer - draft_ns_ * sequences * count;
    if (gain <= best_gain) continue;
    best = count;
    best_gain = gain;
  }
  return best;
}

bool DraftPolicy::may_want(int sequences, const Acceptance& acceptance) {
  if (worthwhile(sequences, acceptance) > 0) return worth_ = true;
  return acceptance.try_in_ > 0 && limit(sequences) > 0;
}

int DraftPolicy::count(int sequences, Acceptance& acceptance) {
  const int count = worthwhile(sequences, acceptance);
  if (acceptance.is_new_) acceptance.rate_ = rate_of_all_;
  if (count > 0) {
    worth_ = true;
    wanted_ += count;
    acceptance.try_in_ = 0;
    return count;
  }
  if (!options_.by_acceptance || limit(sequences) == 0) return 0;
  if (acceptance.try_in_ == 0 && trying_ns_ > 0 && !chosen_) {
    acceptance.try_in_ = 1 + options_.lead;
    chosen_ = true;
  }
  if (acceptance.try_in_ == 0 || --acceptance.try_in_ > 0) return 0;
  trying_ns_ -= std::max<std::int64_t>(0, times_.of(sequences + 1) - times_.of(sequences));
  ++tries_;
  return 1;
}

// Not more is kept for tries than a step takes: none would follow the other for long behind a time without any.
void DraftPolicy::note_step(int tokens, std::int64_t ns) {
  times_.note(tokens, ns);
  trying_ns_ = std::min(trying_ns_ + ns / kShareOfTries, ns);
  chosen_ = false;
}

// What was read of prompts counts for the draft tokens that follow. What tries have taken says only when the
// proposer has become faster: for a first one it may have read a long text.
void DraftPolicy::note_proposed(std::int64_t ns) {
  if (worth_) {
    proposer_ns_ += ns;
    proposed_ += wanted_ + tries_;
    if (proposed_ >= kDraftsOfMean) {
      draft_ns_ = draft_ns_ == 0 ? proposer_ns_ / proposed_ : (3 * draft_ns_ + proposer_ns_ / proposed_) / 4;
      proposer_ns_ = proposed_ = 0;
    }
  } else {
    trying_ns_ -= ns;
    if (tries_ > 0) draft_ns_ = std::min(draft_ns_, (3 * draft_ns_ + ns / tries_) / 4);
  }
  worth_ = false;
  wanted_ = tries_ = 0;
}

}  // namespace octavo
