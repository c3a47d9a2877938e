#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// text: a JSON list, or words separated by commas.
Result<> read_text_list(const std::string& text, std::vector<std::string>& out);

// text: a value of --lora-modules, NAME=PATH or a JSON object.
Result<LoraModule> read_lora_module(const std::string& text);

// Reads --override-generation-config. Logs fields that are not sampling parameters.
Result<> read_generation_overrides(const boost::json::object& config, RuntimeOptions& options);

}  // namespace octavo
