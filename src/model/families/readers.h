// Decoders that are used for embeddings or classification. They have a classifier or nothing instead of an
// output matrix; transformers stores them with its base classes.
#pragma once

#include "model/families/families.h"

namespace octavo {

// Changes the spec of a decoder to an embedding model that uses the last token.
ModelSpec as_embedder(ModelSpec spec);

// Adds label scores that are computed from the last token's vector: with a matrix "score" without biases or,
// if classifier_token_ids is set, with these rows of the output matrix (vLLM's classifier_from_token).
Result<ModelSpec> as_classifier(ModelSpec spec, const Config& config);

// Describe function for a row of the table of families: the decoder as an embedding model.
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
