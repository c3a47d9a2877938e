// params.json: how Mistral's own files ("consolidated") describe a network.
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"

namespace octavo {

// Whether a folder is in that format: it has a params.json, and no config.json or only weights that are in
// this format (is_consolidated).
bool in_mistral_format(const std::string& directory);

// <directory>/params.json as the config.json that families read, under transformers' names. Its model_type
// "transformer" selects the names of tensors (take_mistral_names). Errors name the fields of params.json.
Result<Config> load_params(const std::string& directory);
Result<Config> parse_params(std::string_view text);

}  // namespace octavo
