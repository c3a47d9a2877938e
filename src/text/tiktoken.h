// The tokenizer of Kimi's tiktoken.model (Moonshot AI): a line for each token, its bytes in base64 and its
// rank; special tokens have the ids after these.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// Parses the file's text. `config` names the special tokens (added_tokens_decoder) and their roles; others
// are <|reserved_token_ID|>. Puts no token before texts. Errors: corrupt, naming the line; unsupported if
// `config` is not of Kimi's class, since other models split texts differently.
Result<Tokenizer> tokenizer_of_tiktoken(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
