#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// Reads a list of strings: a JSON list, or comma-separated texts.
Result<> read_text_list(const std::string& text, std::vector<std::string>& out);

// Reads one value of --lora-modules: NAME=PATH, or a JSON object.
Result<LoraModule> read_lora_module(const std::string& text);

// Reads --override-generation-config. Logs the fields that are not sampling parameters.
Result<> read_generation_overrides(const boost::json::object& config, RuntimeOptions& options);

}  // namespace octavo
