// Mistral's tokenizer, from tekken.json: first special tokens, then bytes and merged tokens by rank, as in
// tiktoken.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// Parses the file's text. Chat templates come from `config`. Ids equal those of mistral_common, except that
// special tokens written in a text are recognised. Errors: corrupt and unsupported, with the field's name.
Result<Tokenizer> tokenizer_of_tekken(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
