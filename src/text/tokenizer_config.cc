#include "text/tokenizer_config.h"

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <system_error>

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

// The text of a token, which is a string or an object with `content`. nullptr: another value.
const json::string* token_text(const json::value& value) {
  if (const auto* text = value.if_string()) return text;
  const auto* object = value.if_object();
  const auto* content = object ? object->if_contains("content") : nullptr;
  return content ? content->if_string() : nullptr;
}

void add_special_tokens(const json::object& object, std::vector<SpecialToken>& tokens) {
  for (const auto& [key, value] : object) {
    const std::string name(key);
    const auto* text = name.ends_with("_token") ? token_text(value) : nullptr;
    if (text == nullptr || std::ranges::find(tokens, name, &SpecialToken::name) != tokens.end()) continue;
    tokens.push_back({name, std::string(*text)});
  }
}

Result<> add_templates(const fs::path& path, const json::value& value,
                       std::vector<NamedTemplate>& templates) {
  if (const auto* source = value.if_string()) {
    templates.push_back({"default", std::string(*source)});
    return {};
  }
  const auto* list = value.if_array();
  if (list == nullptr)
    return failure(ErrorCode::corrupt, "{}: chat_template is neither text nor a list", path.string());
  for (const json::value& entry : *list) {
    const auto* object = entry.if_object();
    const auto* name = object ? object->if_contains("name") : nullptr;
    const auto* source = object ? object->if_contains("template") : nullptr;
    if (!name || !source || !name->is_string() || !source->is_string()) {
      return failure(ErrorCode::corrupt, "{}: a chat_template entry lacks name or template", path.string());
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
  // Some older models have this file instead of chat_template.jinja.
  const fs::path older = model_dir / "chat_template.json";
  if (fs::exists(older)) {
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
    return failure(ErrorCode::not_found, "{}: no such file", path.string());
  if (error) return failure(ErrorCode::io, "{}: {}", path.string(), error.message());
  if (size > bytes_max)
    return failure(ErrorCode::invalid_argument, "{}: {} bytes, the limit is {}", path.string(), size,
                   bytes_max);
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size)))
    return failure(ErrorCode::io, "{}: cannot be read", path.string());
  return text;
}

Result<TokenizerConfig> read_tokenizer_config(const std::filesystem::path& model_dir) {
  TokenizerConfig config;
  const fs::path main = model_dir / "tokenizer_config.json";
  if (fs::exists(main)) {
    TRY(config.json, read_text_file(main, kConfigBytesMax));
    TRY(const json::object object, parse_object(main, config.json));
    add_special_tokens(object, config.special_tokens);
    if (const auto* templates = object.if_contains("chat_template"); templates && !templates->is_null()) {
      TRY_VOID(add_templates(main, *templates, config.chat_templates));
    }
  }
  const fs::path map = model_dir / "special_tokens_map.json";
  if (fs::exists(map)) {
    TRY(const std::string text, read_text_file(map, kConfigBytesMax));
    TRY(const json::object object, parse_object(map, text));
    add_special_tokens(object, config.special_tokens);
  }
  TRY_VOID(add_template_files(model_dir, config.chat_templates));
  return config;
}

}  // namespace octavo
