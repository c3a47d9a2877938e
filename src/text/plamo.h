// The tokenizer of PLaMo 2 and 3: tokenizer.jsonl, a token, its score and its type in each line.
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

// Parses the file's text. `config`: the folder's tokenizer_config.json, which selects PLaMo 2 or 3. Errors:
// corrupt, naming line or token.
Result<Tokenizer> tokenizer_of_plamo(std::string_view text, const TokenizerConfig& config);

}  // namespace octavo
