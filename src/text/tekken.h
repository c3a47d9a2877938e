// The tokenizer of Mistral's tekken.json: bytes and the tokens made of them by rank, as tiktoken has it, behind
// special tokens.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// Of the file's text; templates are those of `config`. Ids are those of mistral_common, but for special tokens
// that are written out in a text, which are found. Errors: corrupt and unsupported, naming the field.
Result<Tokenizer> tokenizer_of_tekken(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
