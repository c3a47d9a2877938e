// Chooses the number of draft tokens of a sequence from its recent acceptance rate, the durations of steps,
// and the durations of the proposer. It uses only integers; times are arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/draft/options.h"
#include "engine/draft/step_times.h"

namespace octavo {

// Acceptance rate of one sequence's draft tokens, and the time that they recently saved. The rate is a
// running mean. It counts a draft token only if all draft tokens before it were accepted.
class Acceptance {
 public:
  static constexpr int kOne = 1 << 12;

  void note(bool came_true);
  int rate() const { return rate_; }  // acceptance rate in units of 1 / kOne

 private:
  friend class DraftPolicy;
  bool is_new_ = true;
  int rate_ = kOne;
  std::int64_t saved_ns_ = 0;
  int try_in_ = 0;  // number of steps until an exploratory draft; 0: none is due
};

// Mean duration of a repeated operation in ns: a running mean over means of kOfMean measurements. 0: unknown.
class MeanTime {
 public:
  std::int64_t ns() const { return mean_ns_; }
  void note(std::int64_t ns, std::int64_t times);
  // Adds a measurement that may include other work, so it can only lower the mean.
  void note_if_less(std::int64_t ns);

 private:
  static constexpr std::int64_t kOfMean = 32;
  std::int64_t mean_ns_ = 0;
  std::int64_t total_ns_ = 0, times_ = 0;  // sums since the last change of the mean
};

struct DraftPolicyOptions {
  int most = kDraftTokensMax;
  // Number of tokens that a step computes in about the time of one token. It limits the total of output
  // tokens and draft tokens in a step. 0: no limit.
  int free_tokens = 0;
  std::vector<TokensPerBatchSize> per_batch_size = {};  // limits that replace free_tokens
  bool by_acceptance = false;                           // whether to choose by acceptance rate and durations
  StepTimes times = {};                                 // initial measurements
  int lead = 0;  // number of steps in which the proposer reads a text before it proposes tokens
};

class DraftPolicy {
 public:
  explicit DraftPolicy(DraftPolicyOptions options = {})
      : options_(std::move(options)), times_(options_.times) {}

  // Returns the number of draft tokens for one of `sequences` sequences in the next step, from 0 to `most`.
  // With by_acceptance, it is the number with the least time per output token. A sequence stops drafting when
  // the time that it recently saved is used up. From then on it gets exploratory drafts, which take 1/256 of
  // the time. A new sequence starts with the acceptance rate of all sequences.
  int count(int sequences, Acceptance& acceptance);

  // Returns the maximum number of draft tokens in a step with at most `sequences` sequences.
  int most_of_step(int sequences) const;

  // Returns true if count() may be above 0 within `lead` steps with this number of sequences.
  bool may_want(int sequences, const Acceptance& acceptance);

  // Counts a draft token of this sequence as accepted or rejected.
  void note(Acceptance& acceptance, bool came_true);

  // Adds the duration of a step. tokens: number of tokens, or 0 if the step also computed prompts.
  void note_step(int tokens, std::int64_t ns);
  // Adds the proposer's durations after that step. first_ns: for reading the step and for the first draft
  // token of each sequence. further_ns: for all further draft tokens.
  void note_proposed(std::int64_t first_ns, std::int64_t further_ns);

 private:
  struct Choice {
    int count = 0;  // best number of draft tokens for each sequence, at least 1
    bool pays = false;
    std::int64_t cost_ns = 0;  // time for one sequence
  };
  int limit(int sequences) const;
  Choice choose(int sequences, const Acceptance& acceptance) const;

  DraftPolicyOptions options_;
  StepTimes times_;
  int rate_of_all_ = Acceptance::kOne;  // running mean over some hundred draft tokens
  // Durations of the proposer for the first draft token of a sequence and for each further one. They differ,
  // because a head's first pass also reads the step.
  MeanTime first_, further_;
  int ones_ = 0;  // number of times that exactly one draft token was best

  std::int64_t trying_ns_ = 0;  // time budget of exploratory drafts; below 0: exceeded
  // state of the current step
  int sequences_ = 1;    // the last argument of count()
  bool chosen_ = false;  // whether the next exploratory draft is assigned to a sequence
  bool worth_ = false;   // whether draft tokens save time for at least one sequence
  int drafting_ = 0;     // number of sequences with draft tokens
  int wanted_ = 0;       // number of draft tokens
};

}  // namespace octavo
