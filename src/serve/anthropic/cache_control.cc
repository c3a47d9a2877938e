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

// Raises ttl_s to the time to live of the object's cache_control. `path` is a prefix of the field's name.
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

}  // namespace

Result<> convert_cache_control(const json::object& body, json::object& chat) {
  int ttl_s = 0;
  TRY_VOID(read_longest(body, "", ttl_s));
  TRY_VOID(read_longest_in(body, "system", "", ttl_s));
  TRY_VOID(read_longest_in(body, "tools", "", ttl_s));
  const json::value* messages = body.if_contains("messages");
  for (std::size_t i = 0; messages && messages->is_array() && i < messages->get_array().size(); ++i)
    if (const json::value& message = messages->get_array()[i]; message.is_object())
      TRY_VOID(read_longest_in(message.get_object(), "content", fmt::format("messages[{}].", i), ttl_s));
  if (ttl_s == 0) return {};
  chat["cache_control"] = json::object{{"type", "ephemeral"}, {"ttl", ttl_s > 300 ? "1h" : "5m"}};
  if (chat.contains("session_id") || chat.contains("prompt_cache_key")) return {};
  std::string beginning;
  if (const json::value* system = body.if_contains("system")) beginning = json::serialize(*system);
  if (messages && messages->is_array() && !messages->get_array().empty())
    beginning += json::serialize(messages->get_array().front());
  const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(beginning)), 0);
  chat["prompt_cache_key"] = fmt::format("cache-{:016x}{:016x}", hash.high, hash.low);
  return {};
}

}  // namespace octavo::anthropic
