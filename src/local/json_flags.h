// Flags whose value is JSON.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// A list of strings: JSON, or comma-separated texts.
Result<> read_text_list(const std::string& text, std::vector<std::string>& out);

// One of --lora-modules: NAME=PATH, or a JSON object.
Result<LoraModule> read_lora_module(const std::string& text);

// --override-generation-config. Logs fields that are not sampling parameters here.
Result<> read_generation_overrides(const boost::json::object& config, RuntimeOptions& options);

}  // namespace octavo
