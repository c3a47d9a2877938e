// Decoders that are used for embeddings or classification. transformers stores them with a classifier, or
// with nothing, instead of the output matrix.
#pragma once

#include "model/families/families.h"

namespace octavo {

// Converts a decoder's spec to an embedding model. The last token's vector is the embedding.
ModelSpec as_embedder(ModelSpec spec);

// Adds label scores, computed from the last token's vector. The matrix is "score" without biases or, if
// classifier_token_ids is set, these rows of the output matrix (vLLM's classifier_from_token).
Result<ModelSpec> as_classifier(ModelSpec spec, const Config& config);

// For a row in a family's table: the decoder as an embedding model.
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
