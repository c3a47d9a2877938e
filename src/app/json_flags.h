// Flags whose value is JSON.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// A flag that takes a JSON object; `read` returns an error if it is invalid.
CLI::Option* add_json_flag(CLI::App& app, const std::string& name,
                           std::function<Result<>(const boost::json::object&)> read, const std::string& help);

// A list of strings: JSON, or comma-separated texts.
Result<> read_text_list(const std::string& text, std::vector<std::string>& out);

// One of --lora-modules: NAME=PATH, or a JSON object.
Result<LoraModule> read_lora_module(const std::string& text);

// --override-generation-config. Logs fields that are not sampling parameters here.
Result<> read_generation_overrides(const boost::json::object& config, RuntimeOptions& options);

}  // namespace octavo
