// The tokenizer of Kimi's tiktoken.model (Moonshot AI): a line for each token, its bytes in base64 and its rank; special
// tokens come behind them.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// Of the file's text. `config` says what the special tokens are called (added_tokens_decoder) and which of them play a
// part; others are <|reserved_token_ID|>. No token is put in front of texts. Errors: corrupt, naming the line; unsupported,
// where `config` is not of Kimi's class: other models split their texts otherwise.
Result<Tokenizer> tokenizer_of_tiktoken(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
