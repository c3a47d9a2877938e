// Finds the tokens whose logits are the scores of a generative reranker, such as "yes" and "no".
#pragma once

#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// Adds classifier_token_ids to hf_overrides if config.json or hf_overrides have vLLM's classifier_from_token
// (a list of words). tokenizer: path of the tokenizer. Returns an error if a field is invalid, a word is not
// exactly one token, or hf_overrides is not a JSON object.
Result<> name_classifier_tokens(EngineOptions& options, const std::string& tokenizer);

}  // namespace octavo
