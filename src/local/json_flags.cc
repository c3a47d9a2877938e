#include "local/json_flags.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <sstream>

#include "base/log.h"
#include "openai/request_fields.h"
#include "serve/openai/sampling_reader.h"

namespace octavo {

namespace json = boost::json;

Result<> read_text_list(const std::string& text, std::vector<std::string>& out) {
  out.clear();
  if (!text.starts_with('[')) {
    std::istringstream items(text);
    for (std::string item; std::getline(items, item, ',');) out.push_back(item);
    return {};
  }
  boost::system::error_code not_json;
  const json::value value = json::parse(text, not_json);
  if (not_json) return invalid("", "must be a JSON list of strings");
  for (const json::value& item : value.get_array()) {
    if (!item.is_string()) return invalid("", "must be a JSON list of strings");
    out.emplace_back(item.get_string());
  }
  return {};
}

Result<LoraModule> read_lora_module(const std::string& text) {
  LoraModule module;
  if (text.starts_with('{')) {
    boost::system::error_code not_json;
    const json::value value = json::parse(text, not_json);
    if (not_json || !value.is_object())
      return invalid("", "must be NAME=PATH or a JSON object, got {}", text);
    openai::Fields fields(value.get_object());
    TRY_VOID(fields.text("name", module.name));
    TRY_VOID(fields.text("path", module.path));
    TRY_VOID(fields.text("base_model_name", module.base_model_name));
    for (const std::string& name : fields.unread()) return invalid("", "{}: there is no such field", name);
  } else {
    const std::size_t equals = text.find('=');
    module.name = text.substr(0, equals);
    if (equals != std::string::npos) module.path = text.substr(equals + 1);
  }
  if (module.name.empty() || module.path.empty())
    return invalid("", "must be NAME=PATH or a JSON object, got {}", text);
  return module;
}

Result<> read_generation_overrides(const json::object& config, RuntimeOptions& options) {
  TRY_VOID(openai::generation_defaults(config));
  for (const auto& [name, value] : config)
    if (!openai::is_generation_default(name))
      log_warning("--override-generation-config: {} has no effect", std::string_view(name));
  options.sampling_defaults.overrides = config;
  return {};
}

}  // namespace octavo
