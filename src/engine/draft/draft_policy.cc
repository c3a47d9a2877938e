#include "engine/draft/draft_policy.h"

#include <algorithm>
#include <limits>

namespace octavo {
namespace {

// Minimum acceptance rate while step times are unknown. At a lower rate, a draft token usually costs more
// time than it saves.
constexpr int kLeastLikely = Acceptance::kOne / 4;
// Draft tokens must save at least 1/64 of the step time, because the saving is only an estimate.
constexpr int kLeastGain = 64;
// Upper limit of the time that a sequence has recently saved, in multiples of its share of a step.
constexpr std::int64_t kStepsSaved = 16;
// Exploratory drafts take at most 1 / kShareOfTries of the time.
constexpr int kShareOfTries = 256;
// If exactly one draft token is best, every 64th draft has two tokens, to measure the cost of the second
// token again. This costs at most a quarter of a step in 64 steps.
constexpr int kOnesToTwo = 64;

}  // namespace

void Acceptance::note(bool accepted) {
  is_new_ = false;
  rate_ += ((accepted ? kOne : 0) - rate_) / 32;
}

void MeanTime::note(std::int64_t ns, std::int64_t times) {
  total_ns_ += ns;
  times_ += times;
  if (times_ < kOfMean) return;
  const std::int64_t mean_ns = total_ns_ / times_;
  mean_ns_ = mean_ns_ == 0 ? mean_ns : (3 * mean_ns_ + mean_ns) / 4;
  total_ns_ = times_ = 0;
}

void MeanTime::note_if_less(std::int64_t ns) { mean_ns_ = std::min(mean_ns_, (3 * mean_ns_ + ns) / 4); }

void DraftPolicy::note(Acceptance& acceptance, bool accepted) {
  acceptance.note(accepted);
  rate_of_all_ += ((accepted ? Acceptance::kOne : 0) - rate_of_all_) / 64;
  if (!accepted) return;
  const std::int64_t share = times_.of(sequences_) / sequences_;
  acceptance.saved_ns_ = std::min(acceptance.saved_ns_ + share, kStepsSaved * share);
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

// Returns the best number of draft tokens, under the assumption that all sequences in the step get the same
// number.
DraftPolicy::Choice DraftPolicy::choose(int sequences, const Acceptance& acceptance) const {
  constexpr std::int64_t kOne = Acceptance::kOne;
  const int most = limit(sequences);
  if (!options_.by_acceptance) return {.count = most, .pays = true};
  const std::int64_t rate = acceptance.is_new_ ? rate_of_all_ : acceptance.rate_;
  const std::int64_t step = times_.of(sequences);
  // The first draft token is the most expensive one, because the proposer's first pass also reads the tokens
  // of the last step.
  const std::int64_t first = first_.ns(), further = std::min(further_.ns(), first);
  std::int64_t likely = kOne, tokens = kOne, least = std::numeric_limits<std::int64_t>::max();
  Choice best;
  for (int count = 1; count <= most; ++count) {
    likely = likely * rate / kOne;
    tokens += likely;
    if (step == 0) {
      if (likely < kLeastLikely) break;
      best = {.count = count, .pays = true};
      continue;
    }
    const std::int64_t longer = std::max<std::int64_t>(0, times_.of(sequences * (1 + count)) - step);
    const std::int64_t cost = longer + sequences * (first + further * (count - 1));
    const std::int64_t token = (step + cost) * kOne / tokens;
    if (token >= least) continue;
    least = token;
    best = {.count = count, .pays = token < step - step / kLeastGain, .cost_ns = cost / sequences};
  }
  return best;
}

bool DraftPolicy::may_want(int sequences, const Acceptance& acceptance) {
  const Choice choice = choose(sequences, acceptance);
  if (choice.pays || (choice.count > 0 && acceptance.saved_ns_ > 0)) return worth_ = true;
  return acceptance.try_in_ > 0 && choice.count > 0;
}

int DraftPolicy::count(int sequences, Acceptance& acceptance) {
  sequences_ = std::max(sequences, 1);
  Choice choice = choose(sequences, acceptance);
  if (acceptance.is_new_) acceptance.rate_ = rate_of_all_;
  if (choice.count == 0) return 0;
  if (choice.pays || acceptance.saved_ns_ > 0) {
    if (choice.count == 1 && limit(sequences) > 1 && ++ones_ % kOnesToTwo == 0) choice.count = 2;
    worth_ = true;
    ++drafting_;
    wanted_ += choice.count;
    acceptance.try_in_ = 0;
    acceptance.saved_ns_ = std::max<std::int64_t>(acceptance.saved_ns_, 0) - choice.cost_ns;
    return choice.count;
  }
  if (acceptance.try_in_ == 0 && trying_ns_ > 0 && !chosen_) {
    acceptance.try_in_ = 1 + options_.lead;
    chosen_ = true;
  }
  if (acceptance.try_in_ == 0 || --acceptance.try_in_ > 0) return 0;
  acceptance.saved_ns_ = -choice.cost_ns;
  trying_ns_ -= std::max<std::int64_t>(0, times_.of(sequences + choice.count) - times_.of(sequences));
  ++drafting_;
  wanted_ += choice.count;
  return choice.count;
}

// Limits the unused time for exploratory drafts to the duration of one step, so that there is no burst of
// exploratory drafts after a pause.
void DraftPolicy::note_step(int tokens, std::int64_t ns) {
  times_.note(tokens, ns);
  trying_ns_ = std::min(trying_ns_ + ns / kShareOfTries, ns);
  chosen_ = false;
}

// The time to read a prompt counts as cost of draft tokens. But an exploratory draft may include the time to
// read a long text, so its time can lower the mean, but not raise it.
void DraftPolicy::note_proposed(std::int64_t first_ns, std::int64_t further_ns) {
  further_.note(further_ns, wanted_ - drafting_);
  if (worth_) {
    first_.note(first_ns, drafting_);
  } else {
    trying_ns_ -= first_ns + further_ns;
    if (drafting_ > 0) first_.note_if_less(first_ns / drafting_);
  }
  worth_ = false;
  drafting_ = wanted_ = 0;
}

}  // namespace octavo
