// Reads the tokenizer of PLaMo 2 and 3 (tokenizer.jsonl). Each line has a token, its score and its type.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// text: contents of the file. config: tokenizer_config.json of the same folder, which selects PLaMo 2 or 3.
// Returns corrupt with the line or the token.
Result<Tokenizer> tokenizer_of_plamo(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
