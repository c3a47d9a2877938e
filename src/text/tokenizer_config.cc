#include "text/tokenizer_config.h"

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <system_error>
#include <utility>

#include "text/tokenizer_class.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kConfigBytesMax = 64u << 20;
constexpr std::size_t kTemplateFileBytesMax = 1u << 20;

Result<json::object> parse_object(const fs::path& path, std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) return failure(ErrorCode::corrupt, "{}: {}", path.string(), error.message());
  if (!value.is_object()) return failure(ErrorCode::corrupt, "{}: not a JSON object", path.string());
  return std::move(value.as_object());
}

// A token is a string or an object with `content`. Returns null for other values.
const json::string* token_text(const json::value& value) {
  if (const auto* text = value.if_string()) return text;
  const auto* object = value.if_object();
  const auto* content = object ? object->if_contains("content") : nullptr;
  return content ? content->if_string() : nullptr;
}

// Adds the fields whose names end with _token, and the named tokens of extra_special_tokens. If a name
// occurs twice, the first token counts.
void add_special_tokens(const json::object& object, std::vector<SpecialToken>& tokens) {
  const auto add = [&](std::string_view name, const json::value& value) {
    const auto* text = token_text(value);
    if (text == nullptr || std::ranges::find(tokens, name, &SpecialToken::name) != tokens.end()) return;
    tokens.push_back({std::string(name), std::string(*text)});
  };
  for (const auto& [key, value] : object)
    if (key.ends_with("_token")) add(key, value);
  const auto* extra = object.if_contains("extra_special_tokens");
  if (const auto* named = extra != nullptr ? extra->if_object() : nullptr; named != nullptr)
    for (const auto& [key, value] : *named) add(key, value);
}

// Returns an empty object if the file does not exist.
Result<json::object> read_object(const fs::path& path) {
  if (!fs::exists(path)) return json::object();
  TRY(const std::string text, read_text_file(path, kConfigBytesMax));
  return parse_object(path, text);
}

// The tokens of special_tokens_map.json replace those of the config; additional_special_tokens of both
// files are joined.
void override_special_tokens(const json::object& map, json::object& config) {
  constexpr std::string_view kAdditional = "additional_special_tokens";
  for (const auto& [key, value] : map) {
    json::value& field = config[key];
    const auto* more = value.if_array();
    auto* listed = key == kAdditional ? field.if_array() : nullptr;
    if (more == nullptr || listed == nullptr) {
      field = value;
      continue;
    }
    for (const json::value& token : *more)
      if (std::ranges::none_of(*listed, [&](const json::value& one) {
            return token_text(one) != nullptr && token_text(token) != nullptr &&
                   *token_text(one) == *token_text(token);
          }))
        listed->push_back(token);
  }
}

// transformers ignores these files if tokenizer_config.json has added_tokens_decoder.
Result<> add_older_files(const fs::path& model_dir, json::object& config) {
  TRY(const json::object map, read_object(model_dir / "special_tokens_map.json"));
  override_special_tokens(map, config);
  TRY(const json::object added, read_object(model_dir / "added_tokens.json"));
  json::object decoder;
  for (const auto& [text, id] : added) {
    if (!id.is_int64())
      return failure(ErrorCode::corrupt, "{}: the id of \"{}\" is not a whole number",
                     (model_dir / "added_tokens.json").string(), std::string_view(text));
    decoder[std::to_string(id.get_int64())] = {{"content", text}};
  }
  if (!decoder.empty()) config["added_tokens_decoder"] = std::move(decoder);
  return {};
}

Result<> add_class(const fs::path& model_dir, json::object& config) {
  const auto named = [](const json::object& object, std::string_view key) -> const json::string* {
    const auto* value = object.if_contains(key);
    return value != nullptr ? value->if_string() : nullptr;
  };
  if (named(config, "tokenizer_class") != nullptr) return {};
  TRY(const json::object model, read_object(model_dir / "config.json"));
  const json::string* model_type = named(model, "model_type");
  if (const json::string* name = named(model, "tokenizer_class"); name != nullptr) {
    config["tokenizer_class"] = *name;
  } else if (model_type != nullptr) {
    if (const auto chosen = tokenizer_class_of(std::string_view(*model_type)))
      config["tokenizer_class"] = *chosen;
  }
  return {};
}

Result<> add_templates(const fs::path& path, const json::value& value,
                       std::vector<NamedTemplate>& templates) {
  if (const auto* source = value.if_string()) {
    templates.push_back({"default", std::string(*source)});
    return {};
  }
  const auto* list = value.if_array();
  if (list == nullptr)
    return failure(ErrorCode::corrupt, "{}: chat_template must be a string or a list", path.string());
  for (const json::value& entry : *list) {
    const auto* object = entry.if_object();
    const auto* name = object ? object->if_contains("name") : nullptr;
    const auto* source = object ? object->if_contains("template") : nullptr;
    if (!name || !source || !name->is_string() || !source->is_string()) {
      return failure(ErrorCode::corrupt, "{}: each entry of chat_template must have name and template",
                     path.string());
    }
    templates.push_back({std::string(name->as_string()), std::string(source->as_string())});
  }
  return {};
}

void set_template(std::vector<NamedTemplate>& templates, std::string name, std::string source) {
  std::erase_if(templates, [&](const NamedTemplate& one) { return one.name == name; });
  templates.push_back({std::move(name), std::move(source)});
}

Result<> add_template_files(const fs::path& model_dir, std::vector<NamedTemplate>& templates) {
  // In transformers, processors read this file and tokenizers do not.
  const fs::path older = model_dir / "chat_template.json";
  const bool has_processor =
      fs::exists(model_dir / "preprocessor_config.json") || fs::exists(model_dir / "processor_config.json");
  if (has_processor && fs::exists(older)) {
    TRY(const std::string text, read_text_file(older, kTemplateFileBytesMax));
    TRY(const json::object object, parse_object(older, text));
    if (const auto* source = object.if_contains("chat_template"); source && source->is_string())
      set_template(templates, "default", std::string(source->get_string()));
  }
  const fs::path main = model_dir / "chat_template.jinja";
  if (fs::exists(main)) {
    TRY(std::string source, read_text_file(main, kTemplateFileBytesMax));
    set_template(templates, "default", std::move(source));
  }
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(model_dir / "additional_chat_templates", error)) {
    if (entry.path().extension() != ".jinja") continue;
    TRY(std::string source, read_text_file(entry.path(), kTemplateFileBytesMax));
    set_template(templates, entry.path().stem().string(), std::move(source));
  }
  return {};
}

}  // namespace

std::string_view TokenizerConfig::special_token(std::string_view name) const {
  const auto found = std::ranges::find(special_tokens, name, &SpecialToken::name);
  return found == special_tokens.end() ? std::string_view() : std::string_view(found->text);
}

std::string_view TokenizerConfig::chat_template(bool with_tools) const {
  const auto named = [&](std::string_view name) -> std::string_view {
    const auto found = std::ranges::find(chat_templates, name, &NamedTemplate::name);
    return found == chat_templates.end() ? std::string_view() : std::string_view(found->source);
  };
  const std::string_view for_tools = with_tools ? named("tool_use") : std::string_view();
  return for_tools.empty() ? named("default") : for_tools;
}

Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t bytes_max) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory)
    return failure(ErrorCode::not_found, "{}: the file does not exist", path.string());
  if (error) return failure(ErrorCode::io, "{}: {}", path.string(), error.message());
  if (size > bytes_max)
    return failure(ErrorCode::invalid_argument, "{}: the file has {} bytes, but the limit is {}",
                   path.string(), size, bytes_max);
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size)))
    return failure(ErrorCode::io, "{}: the file cannot be read", path.string());
  return text;
}

Result<TokenizerConfig> read_tokenizer_config(const std::filesystem::path& model_dir) {
  TokenizerConfig config;
  const fs::path main = model_dir / "tokenizer_config.json";
  TRY(json::object object, read_object(main));
  if (!object.contains("added_tokens_decoder")) TRY_VOID(add_older_files(model_dir, object));
  TRY_VOID(add_class(model_dir, object));
  add_special_tokens(object, config.special_tokens);
  if (const auto* templates = object.if_contains("chat_template"); templates && !templates->is_null())
    TRY_VOID(add_templates(main, *templates, config.chat_templates));
  TRY_VOID(add_template_files(model_dir, config.chat_templates));
  if (!object.empty()) config.json = json::serialize(object);
  return config;
}

void apply_class(TokenizerConfig& config, std::string_view tokenizer_json) {
  if (config.json.empty()) return;
  json::object object = json::parse(config.json).as_object();
  apply_class(object);
  const auto [bos, eos] = class_tokens(object);
  for (const auto& [role, token] : {std::pair("bos_token", bos), std::pair("eos_token", eos)}) {
    if (token.empty() || object.contains(role) ||
        !tokenizer_json.contains(json::serialize(json::string(token))))
      continue;
    object[role] = token;
    config.special_tokens.push_back({role, std::string(token)});
  }
  config.json = json::serialize(object);
}

}  // namespace octavo
