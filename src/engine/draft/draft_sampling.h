// Samples the draft tokens of one sequence. Draft tokens use the same random numbers as the output tokens
// that they predict, so that more of them are accepted.
#pragma once

#include "engine/draft/proposer.h"
#include "request/sampling_params.h"
#include "sample/sampler.h"
#include "sample/sequence_sampling.h"

namespace octavo {

class DraftSampling {
 public:
  // If `drawn` is false, takes the most likely tokens. `same_ids` says whether column i of the logits is
  // token i.
  DraftSampling(const Draft& draft, bool drawn, int vocab_size, bool same_ids = true);
  DraftSampling(const DraftSampling&) = delete;

  // Returns the sampling parameters for the next draft token, which follows the text and the draft tokens
  // so far.
  SampleRow row(const Draft& draft) const;

 private:
  SamplingParams params_;
  SequenceSampling sampling_;
};

}  // namespace octavo
