// Decoders that read texts instead of continuing them: the same networks without their output matrix, stored
// by transformers' base classes, or with a classifier in its place.
#pragma once

#include "model/families/families.h"

namespace octavo {

// A decoder's spec as an embedder of the last token.
ModelSpec as_embedder(ModelSpec spec);

// Scores of labels by the last token's vector: a matrix "score" without biases or, with classifier_token_ids,
// these rows of the output matrix (vLLM's classifier_from_token).
Result<ModelSpec> as_classifier(ModelSpec spec, const Config& config);

// For a row of the table of families.
template <Result<ModelSpec> (*describe_decoder)(const Config&)>
Result<ModelSpec> describe_embedder(const Config& config) {
  TRY(ModelSpec spec, describe_decoder(config));
  return as_embedder(std::move(spec));
}

template <Result<ModelSpec> (*describe_decoder)(const Config&)>
Result<ModelSpec> describe_decoder_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_decoder(config));
  return as_classifier(std::move(spec), config);
}

}  // namespace octavo
