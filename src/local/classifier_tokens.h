// Rerankers whose scores are the logits of words: finds the tokens of these words.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// If config.json or hf_overrides contain vLLM's classifier_from_token (words such as "no" and "yes"), adds
// the ids of these tokens to hf_overrides as classifier_token_ids. tokenizer: path of the tokenizer.
// Errors: the field is invalid, a word is not exactly one token, or hf_overrides is not a JSON object.
Result<> name_classifier_tokens(EngineOptions& options, const std::string& tokenizer);

}  // namespace octavo
