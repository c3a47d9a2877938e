// How many tokens to propose for a sequence: as many as are worth their time, by how often they were accepted lately
// and by what steps and the proposer take. Integers only; times are arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/draft/options.h"
#include "engine/draft/step_times.h"

namespace octavo {

// How often the draft tokens of one sequence have been accepted lately: a running mean over those that stood
// behind true ones. And what they have gained lately.
class Acceptance {
 public:
  static constexpr int kOne = 1 << 12;

  void note(bool came_true);
  int rate() const { return rate_; }  // of kOne

 private:
  friend class DraftPolicy;
  bool is_new_ = true;
  int rate_ = kOne;
  std::int64_t saved_ns_ = 0;
  int try_in_ = 0;  // steps until a draft token is tried; 0: none is to be
};

// What something takes that is done over and over: a running mean of means over `kOfMean` each. 0: not known.
class MeanTime {
 public:
  std::int64_t ns() const { return mean_ns_; }
  void note(std::int64_t ns, std::int64_t times);
  // Of single ones that may have taken longer than usual: only less is believed.
  void note_if_less(std::int64_t ns);

 private:
  static constexpr std::int64_t kOfMean = 32;
  std::int64_t mean_ns_ = 0;
  std::int64_t total_ns_ = 0, times_ = 0;  // since it was last changed
};

struct DraftPolicyOptions {
  int most = kDraftTokensMax;
  // Tokens that a step computes in hardly more time than one: where all sequences' tokens and draft tokens
  // would be more, there are fewer draft tokens. 0: no limit.
  int free_tokens = 0;
  std::vector<TokensPerBatchSize> per_batch_size = {};  // in place of free_tokens
  bool by_acceptance = false;  // draft tokens are cut where they are not worth their time
  StepTimes times = {};        // what is known of them before the first step
  int lead = 0;                // steps that the proposer follows a text before it proposes
};

class DraftPolicy {
 public:
  explicit DraftPolicy(DraftPolicyOptions options = {}) : options_(std::move(options)), times_(options_.times) {}

  // Draft tokens of one of `sequences` sequences in the next step, from 0 to `most`. With by_acceptance: as
  // many as let a token take the least time, where that is less than without. What its draft tokens have
  // gained lately a sequence may lose again: a few that are wrong in a row do not end what pays. Behind that
  // they are tried at times, or nothing would ever be learnt again: as often as half a hundredth of all time
  // pays for. A sequence without a record begins with that of all.
  int count(int sequences, Acceptance& acceptance);

  // Draft tokens of a step with at most so many sequences, at most.
  int most_of_step(int sequences) const;

  // Whether count() may be more than 0 within `lead` steps, if as many sequences run.
  bool may_want(int sequences, const Acceptance& acceptance);

  // What came of a draft token of this sequence: into its record, and into that of all.
  void note(Acceptance& acceptance, bool came_true);

  // A step has taken so long. tokens: 0 where it has computed prompts, too.
  void note_step(int tokens, std::int64_t ns);
  // So has the proposer, since the step before: until it had the first draft token of each sequence, with
  // what it read for them, and for all further ones.
  void note_proposed(std::int64_t first_ns, std::int64_t further_ns);

 private:
  struct Choice {
    int count = 0;  // draft tokens of each sequence: the best number of them that is not 0
    bool pays = false;
    std::int64_t cost_ns = 0;  // of a sequence
  };
  int limit(int sequences) const;
  Choice choose(int sequences, const Acceptance& acceptance) const;

  DraftPolicyOptions options_;
  StepTimes times_;
  int rate_of_all_ = Acceptance::kOne;  // a running mean over some hundred draft tokens
  // Of the proposer: a sequence's first draft token of a step, and each further one. A head's first pass
  // reads what the step has computed; as a share of each token it would make few of them look dear, and so
  // fewer be asked for.
  MeanTime first_, further_;
  int ones_ = 0;  // how often one draft token was worth it, and no more

  std::int64_t trying_ns_ = 0;  // that tries may take; below 0: they have taken more
  // Of the step.
  int sequences_ = 1;    // of which count() was told last
  bool chosen_ = false;  // a sequence, for the next try
  bool worth_ = false;   // draft tokens are worth it for a sequence
  int drafting_ = 0;     // sequences with draft tokens
  int wanted_ = 0;       // draft tokens
};

}  // namespace octavo
