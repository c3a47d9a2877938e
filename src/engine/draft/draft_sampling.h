// How draft tokens of one sequence are drawn: with the randomness of the tokens that they propose.
#pragma once

#include "engine/draft/proposer.h"
#include "request/sampling_params.h"
#include "sample/sampler.h"
#include "sample/sequence_sampling.h"

namespace octavo {

class DraftSampling {
 public:
  // drawn: false: the likeliest token. same_ids: row i of the logits is token i.
  DraftSampling(const Draft& draft, bool drawn, int vocab_size, bool same_ids = true);
  DraftSampling(const DraftSampling&) = delete;

  // Chooses what follows the draft's text and draft tokens.
  SampleRow row(const Draft& draft) const;

 private:
  SamplingParams params_;
  SequenceSampling sampling_;  // refers to params_
};

}  // namespace octavo
