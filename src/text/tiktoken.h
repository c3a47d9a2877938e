// The tokenizer of Kimi (Moonshot AI), from tiktoken.model. Each line contains a token's bytes in base64, and
// its rank. Special tokens have the ids after these.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// Parses the file's text. config: names of the special tokens (added_tokens_decoder) and their roles; unnamed
// ones are <|reserved_token_ID|>. No token is added before a text. Errors: corrupt, with the line;
// unsupported if `config` is not of Kimi's class, because other models split texts differently.
Result<Tokenizer> tokenizer_of_tiktoken(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
