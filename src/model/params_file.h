// Reads params.json, which describes a network in Mistral's own format ("consolidated").
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"

namespace octavo {

// Returns whether a folder has this format: it has a params.json, and either no config.json or only weights
// in Mistral's format (is_consolidated).
bool in_mistral_format(const std::string& directory);

// Converts <directory>/params.json to the fields of config.json, with transformers' names. The model_type
// "transformer" selects the tensor names (take_mistral_names). Errors name the fields of params.json.
Result<Config> load_params(const std::string& directory);
Result<Config> parse_params(std::string_view text);

}  // namespace octavo
