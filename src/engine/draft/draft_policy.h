// Chooses how many draft tokens a sequence gets, from its recent acceptance rate, the step times, and the
// times of the proposer. The policy uses only integers and reads no clock, so it is deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/draft/options.h"
#include "engine/draft/step_times.h"

namespace octavo {

// Acceptance rate of the draft tokens of one sequence, and the time that these tokens recently saved. The
// rate is a running mean. It counts a draft token only if all earlier tokens of the same draft were
// accepted.
class Acceptance {
 public:
  static constexpr int kOne = 1 << 12;

  void note(bool accepted);
  int rate() const { return rate_; }  // acceptance rate in units of 1 / kOne

 private:
  friend class DraftPolicy;
  bool is_new_ = true;
  int rate_ = kOne;
  std::int64_t saved_ns_ = 0;
  int try_in_ = 0;  // number of steps until an exploratory draft; 0: no exploratory draft is planned
};

// Mean duration of a repeated operation in ns. It is a running mean over means of kOfMean measurements. 0:
// unknown.
class MeanTime {
 public:
  std::int64_t ns() const { return mean_ns_; }
  void note(std::int64_t ns, std::int64_t times);
  // Adds a measurement that may include other work. It can lower the mean, but not raise it.
  void note_if_less(std::int64_t ns);

 private:
  static constexpr std::int64_t kOfMean = 32;
  std::int64_t mean_ns_ = 0;
  std::int64_t total_ns_ = 0, times_ = 0;  // sums since the mean was last updated
};

struct DraftPolicyOptions {
  int most = kDraftTokensMax;
  // Limit on the number of output tokens and draft tokens of all sequences in a step. A step with this
  // number of tokens takes about as long as a step with one token. 0: no limit.
  int free_tokens = 0;
  std::vector<TokensPerBatchSize> per_batch_size = {};  // limits that replace free_tokens
  bool by_acceptance = false;                           // choose by acceptance rate and step times
  StepTimes times = {};
  int lead = 0;  // number of steps for which the proposer must read a text before it can propose tokens
};

class DraftPolicy {
 public:
  explicit DraftPolicy(DraftPolicyOptions options = {})
      : options_(std::move(options)), times_(options_.times) {}

  // Returns the number of draft tokens in the next step for one of `sequences` sequences, from 0 to `most`.
  // With by_acceptance, this is the number with the least time per output token. If draft tokens save no time
  // any more, a sequence gets them until the time that they recently saved is used up. Then it gets only
  // exploratory drafts, which take 1/256 of the time. A new sequence starts with the mean acceptance rate of
  // all sequences.
  int count(int sequences, Acceptance& acceptance);

  // Returns the maximum number of draft tokens of all sequences in a step with at most `sequences`
  // sequences.
  int most_of_step(int sequences) const;

  // Returns whether count() may return more than 0 within the next `lead` steps.
  bool may_want(int sequences, const Acceptance& acceptance);

  void note(Acceptance& acceptance, bool accepted);

  // Adds the duration of a step with `tokens` output and draft tokens. `tokens` is 0 if the step also
  // computed prompts.
  void note_step(int tokens, std::int64_t ns);
  // Adds the times that the proposer took after the step of the last note_step() call. The time first_ns is
  // for reading the step and for proposing the first draft token of each sequence. The time further_ns is for
  // all further draft tokens.
  void note_proposed(std::int64_t first_ns, std::int64_t further_ns);

 private:
  struct Choice {
    int count = 0;  // best number of draft tokens for each sequence, at least 1
    bool pays = false;
    std::int64_t cost_ns = 0;  // time that the draft tokens of one sequence cost
  };
  int limit(int sequences) const;
  Choice choose(int sequences, const Acceptance& acceptance) const;

  DraftPolicyOptions options_;
  StepTimes times_;
  int rate_of_all_ = Acceptance::kOne;  // running mean over some hundred draft tokens
  // Times of the proposer for the first draft token of a sequence and for each further one. The first pass
  // of a head also reads the step, so it takes longer.
  MeanTime first_, further_;
  int ones_ = 0;  // number of times that exactly one draft token was best

  std::int64_t trying_ns_ = 0;  // time that exploratory drafts may take; below 0: exceeded
  // Members from here on describe the current step.
  int sequences_ = 1;
  bool chosen_ = false;  // whether the next exploratory draft is assigned to a sequence
  bool worth_ = false;   // whether draft tokens save time for at least one sequence
  int drafting_ = 0;
  int wanted_ = 0;  // total number of requested draft tokens
};

}  // namespace octavo
