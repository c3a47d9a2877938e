// How many tokens to propose for a sequence: as many as are likely to be accepted, and as a step of so many
// sequences still takes along at little cost. Integers only.
#pragma once

#include <span>
#include <vector>

#include "speculate/options.h"

namespace octavo {

// How often the draft tokens of one sequence have been accepted lately: a running mean over those that stood
// behind true ones.
class Acceptance {
 public:
  static constexpr int kOne = 1 << 12;
  static constexpr int kProbeEvery = 16;       // steps without a draft token before one is tried
  static constexpr int kProbeEveryMost = 256;  // the same, when all that were tried have failed

  void note(bool came_true);
  int rate() const { return rate_; }  // of kOne

 private:
  friend class DraftPolicy;
  bool is_new_ = true;
  int rate_ = kOne;
  int undrafted_ = 0;  // steps since the last draft token
  int wait_ = kProbeEvery;
};

struct DraftPolicyOptions {
  int most = kDraftTokensMax;
  // Tokens that a step computes in hardly more time than one: where all sequences' tokens and draft tokens
  // would be more, there are fewer draft tokens. 0: no limit.
  int free_tokens = 0;
  std::vector<TokensPerBatchSize> per_batch_size = {};  // in place of free_tokens
  bool by_acceptance = false;  // draft tokens are cut where they are not likely to be accepted
};

class DraftPolicy {
 public:
  explicit DraftPolicy(DraftPolicyOptions options = {}) : options_(std::move(options)) {}

  // Draft tokens of one of `sequences` sequences in the next step, from 0 to `most`. With by_acceptance one is
  // tried after kProbeEvery steps without any, or nothing would ever be learnt again; after twice as many each
  // time that it fails. A sequence without a record begins with that of all.
  int count(int sequences, Acceptance& acceptance) const;

  // Draft tokens of a step with at most so many sequences, at most.
  int most_of_step(int sequences) const;

  // Whether count() may be more than 0 within so many steps, if as many sequences run.
  bool may_want(int sequences, const Acceptance& acceptance, int steps) const;

  // What came of a draft token of this sequence: into its record, and into that of all.
  void note(Acceptance& acceptance, bool came_true);

 private:
  int limit(int sequences) const;

  DraftPolicyOptions options_;
  int rate_of_all_ = Acceptance::kOne;  // a running mean over some hundred draft tokens
};

}  // namespace octavo
