// Reads Kimi's tokenizer (tiktoken.model). Each line has the bytes of a token in base64, and its rank.
// Special tokens have the next ids.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// text: contents of the file. config: names of special tokens (added_tokens_decoder) and their roles;
// unnamed ones are <|reserved_token_ID|>. No token is added before a text. Returns corrupt with the line,
// or unsupported if `config` has another class than Kimi's, because other models split texts differently.
Result<Tokenizer> tokenizer_of_tiktoken(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
