// Rerankers that say a word: which tokens their scores are of.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// If config.json or hf_overrides have classifier_from_token (vLLM's: words such as "no" and "yes"), adds the
// ids of these tokens to hf_overrides as classifier_token_ids. tokenizer: its path. Errors: the field is
// invalid, a word is not one token, or hf_overrides is not a JSON object.
Result<> name_classifier_tokens(EngineOptions& options, const std::string& tokenizer);

}  // namespace octavo
