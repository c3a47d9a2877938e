// Reads Mistral's tokenizer (tekken.json): its tokens are the special tokens, then bytes and merged tokens by
// rank as in tiktoken.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// text: contents of the file. config: has the chat templates. Ids equal those of mistral_common, except
// that special tokens in a text are recognized. Returns corrupt or unsupported, with the name of the field.
Result<Tokenizer> tokenizer_of_tekken(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
