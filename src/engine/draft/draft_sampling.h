// Samples the draft tokens of one sequence, with the same random numbers as the output tokens that they
// predict.
#pragma once

#include "engine/draft/proposer.h"
#include "request/sampling_params.h"
#include "sample/sampler.h"
#include "sample/sequence_sampling.h"

namespace octavo {

class DraftSampling {
 public:
  // drawn: false takes the most likely token. same_ids: whether row i of the logits is for token i.
  DraftSampling(const Draft& draft, bool drawn, int vocab_size, bool same_ids = true);
  DraftSampling(const DraftSampling&) = delete;

  // Returns the sampling parameters of the token after the draft's text and its draft tokens.
  SampleRow row(const Draft& draft) const;

 private:
  SamplingParams params_;
  SequenceSampling sampling_;  // refers to params_
};

}  // namespace octavo
