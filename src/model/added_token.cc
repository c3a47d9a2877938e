#include "model/added_token.h"

#include <boost/json.hpp>
#include <charconv>
#include <filesystem>
#include <optional>

#include "weights/json.h"

namespace octavo {
namespace {

namespace json = boost::json;

std::optional<int> whole_number(const json::value* value) {
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0 || value->get_int64() > 1 << 28)
    return {};
  return static_cast<int>(value->get_int64());
}

bool says(const json::value& token, std::string_view text) {
  const auto* content = token.is_object() ? token.get_object().if_contains("content") : nullptr;
  return content != nullptr && content->is_string() && std::string_view(content->get_string()) == text;
}

// {"<text>": id}
std::optional<int> in_list(const json::object& file, std::string_view text) {
  return whole_number(file.if_contains(text));
}

// {"added_tokens_decoder": {"<id>": {"content": "<text>"}}}
std::optional<int> in_decoder(const json::object& file, std::string_view text) {
  const auto* decoder = file.if_contains("added_tokens_decoder");
  if (decoder == nullptr || !decoder->is_object()) return {};
  for (const auto& [id, token] : decoder->get_object()) {
    if (!says(token, text)) continue;
    int number = 0;
    const char* const end = id.data() + id.size();
    if (std::from_chars(id.data(), end, number).ptr == end && number >= 0) return number;
  }
  return {};
}

// {"added_tokens": [{"id": id, "content": "<text>"}]}
std::optional<int> in_added(const json::object& file, std::string_view text) {
  const auto* added = file.if_contains("added_tokens");
  if (added == nullptr || !added->is_array()) return {};
  for (const json::value& token : added->get_array())
    if (says(token, text)) return whole_number(token.get_object().if_contains("id"));
  return {};
}

}  // namespace

Result<int> id_of_added_token(const std::string& directory, std::string_view text) {
  constexpr std::pair<const char*, std::optional<int> (*)(const json::object&, std::string_view)> kFiles[] = {
      {"added_tokens.json", in_list}, {"tokenizer_config.json", in_decoder}, {"tokenizer.json", in_added}};
  for (const auto& [name, find] : kFiles) {
    const std::filesystem::path file = std::filesystem::path(directory) / name;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    TRY(const json::value tree, read_json_file(file));
    if (!tree.is_object()) continue;
    if (const std::optional<int> id = find(tree.get_object(), text)) return *id;
  }
  return invalid("tokenizer", "{}: no tokenizer file has the token \"{}\", the placeholder of images",
                 directory, text);
}

}  // namespace octavo
