// The ids of tokens that were added to a tokenizer, such as placeholders of images.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Reads the id of the token `text` from added_tokens.json, tokenizer_config.json or tokenizer.json in
// `directory`.
Result<int> id_of_added_token(const std::string& directory, std::string_view text);

}  // namespace octavo
