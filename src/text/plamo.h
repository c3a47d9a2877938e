// The tokenizer of PLaMo 2 and 3, from tokenizer.jsonl. Each line contains a token, its score and its type.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// Parses the file's text. config: tokenizer_config.json of the same folder; it selects PLaMo 2 or 3. Errors:
// corrupt, with the line or the token.
Result<Tokenizer> tokenizer_of_plamo(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
