#include "engine/draft/draft_sampling.h"

namespace octavo {
namespace {

// Copies only the parameters that apply to draft tokens: those that shape the distribution, and the allowed
// tokens.
SamplingParams drafting_params(const SamplingParams& of, bool drawn, bool same_ids) {
  SamplingParams params;
  params.temperature = drawn ? of.temperature : 0;
  params.top_p = of.top_p;
  params.top_k = of.top_k;
  params.min_p = of.min_p;
  if (!same_ids) return params;
  params.tokens.logit_bias = of.tokens.logit_bias;
  params.tokens.allowed_token_ids = of.tokens.allowed_token_ids;
  return params;
}

}  // namespace

DraftSampling::DraftSampling(const Draft& draft, bool drawn, int vocab_size, bool same_ids)
    : params_(drafting_params(*draft.sampling, drawn, same_ids)),
      sampling_(params_, {}, {}, draft.seed, vocab_size) {}

SampleRow DraftSampling::row(const Draft& draft) const {
  return {.sequence = &sampling_,
          .output = draft.text.subspan(static_cast<std::size_t>(draft.prompt_tokens)),
          .drafts = draft.tokens};
}

}  // namespace octavo
