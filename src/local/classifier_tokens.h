// Rerankers that say a word: which tokens their scores are of.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// Where config.json or hf_overrides have classifier_from_token (vLLM's: words such as "no" and "yes"), adds
// the ids of these tokens as classifier_token_ids to hf_overrides. tokenizer: its path. Errors: the field, a
// word that is no token, hf_overrides that are no JSON object.
Result<> name_classifier_tokens(EngineOptions& options, const std::string& tokenizer);

}  // namespace octavo
