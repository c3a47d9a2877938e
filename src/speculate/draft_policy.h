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

  void note(bool came_true) { rate_ += ((came_true ? kOne : 0) - rate_) / 8; }
  int rate() const { return rate_; }  // of kOne

 private:
  friend class DraftPolicy;
  int rate_ = kOne;
  int undrafted_ = 0;  // steps since the last draft token
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

  // Draft tokens of one of `sequences` sequences in the next step, from 0 to `most`. With by_acceptance at
  // least one in every kProbeEvery steps, or nothing would ever be learnt again.
  int count(int sequences, Acceptance& acceptance) const;

  static constexpr int kProbeEvery = 16;

 private:
  int limit(int sequences) const;

  DraftPolicyOptions options_;
};

}  // namespace octavo
