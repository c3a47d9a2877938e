// Reads params.json, which describes a network in Mistral's own format ("consolidated").
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"

namespace octavo {

// Returns whether a folder has Mistral's format: params.json exists, and either config.json is missing or all
// weights are in Mistral's format (is_consolidated).
bool in_mistral_format(const std::string& directory);

// Converts params.json to the fields of config.json. The result has the model_type "transformer", which
// selects Mistral's tensor names (take_mistral_names). Errors name the fields of params.json.
Result<Config> load_params(const std::string& directory);
Result<Config> parse_params(std::string_view text);

}  // namespace octavo
