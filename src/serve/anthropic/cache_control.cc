#include "serve/anthropic/cache_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <span>
#include <string>

#include "base/hash.h"
#include "serve/openai/session_fields.h"

namespace octavo::anthropic {

namespace json = boost::json;

namespace {

// If the object has a cache_control with a longer time to live than ttl_s, sets ttl_s to it. path: prefix of
// the field's name, for errors.
Result<> read_longest(const json::object& object, const std::string& path, int& ttl_s) {
  const json::value* control = object.if_contains("cache_control");
  if (control == nullptr || control->is_null()) return {};
  TRY(const int own, openai::read_cache_control(*control, path + "cache_control"));
  ttl_s = std::max(ttl_s, own);
  return {};
}

Result<> read_longest_in(const json::object& object, std::string_view list, const std::string& path,
                         int& ttl_s) {
  const json::value* items = object.if_contains(list);
  if (items == nullptr || !items->is_array()) return {};
  for (std::size_t i = 0; i < items->get_array().size(); ++i)
    if (const json::value& item = items->get_array()[i]; item.is_object())
      TRY_VOID(read_longest(item.get_object(), fmt::format("{}{}[{}].", path, list, i), ttl_s));
  return {};
}

// Removes cache_control from all blocks. Clients move it to another block in each turn, so the derived name
// would change.
void remove_cache_control(json::value& value) {
  if (json::array* const items = value.if_array()) {
    for (json::value& item : *items) remove_cache_control(item);
  } else if (json::object* const object = value.if_object()) {
    object->erase("cache_control");
    for (auto& [key, member] : *object) remove_cache_control(member);
  }
}

// Replaces a text by a list with one block of this text, which means the same.
void write_as_blocks(json::value& content) {
  if (content.is_string()) content = json::array{json::object{{"type", "text"}, {"text", content}}};
}

std::string derived_name(const json::value* system, const json::value* messages) {
  json::array beginning;
  if (system != nullptr) {
    beginning.push_back(*system);
    write_as_blocks(beginning.back());
  }
  if (messages && messages->is_array() && !messages->get_array().empty()) {
    beginning.push_back(messages->get_array().front());
    if (json::object* const first = beginning.back().if_object())
      if (json::value* const content = first->if_contains("content")) write_as_blocks(*content);
  }
  for (json::value& part : beginning) remove_cache_control(part);
  const std::string text = json::serialize(beginning);
  const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(text)), 0);
  return fmt::format("cache-{:016x}{:016x}", hash.high, hash.low);
}

}  // namespace

Result<std::string> convert_cache_control(const json::object& body, json::object& chat) {
  int ttl_s = 0;
  TRY_VOID(read_longest(body, "", ttl_s));
  TRY_VOID(read_longest_in(body, "system", "", ttl_s));
  TRY_VOID(read_longest_in(body, "tools", "", ttl_s));
  const json::value* messages = body.if_contains("messages");
  for (std::size_t i = 0; messages && messages->is_array() && i < messages->get_array().size(); ++i)
    if (const json::value& message = messages->get_array()[i]; message.is_object())
      TRY_VOID(read_longest_in(message.get_object(), "content", fmt::format("messages[{}].", i), ttl_s));
  if (ttl_s == 0) return std::string();
  chat["cache_control"] = json::object{{"type", "ephemeral"}, {"ttl", ttl_s > 300 ? "1h" : "5m"}};
  return derived_name(body.if_contains("system"), messages);
}

}  // namespace octavo::anthropic
