// Loads a tokenizer from a model folder or a GGUF file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

Result<Tokenizer> load_tokenizer(const std::string& path);

// Adds the tokenizer's eos_token to the end-of-text tokens, in ascending order. vLLM does this as well,
// because fine-tuned models often name their end token only in tokenizer_config.json.
void add_eos_token(const Tokenizer& tokenizer, std::vector<std::int32_t>& eos_ids);

}  // namespace octavo
