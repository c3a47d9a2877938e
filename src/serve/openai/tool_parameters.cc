#include "serve/openai/tool_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "grammar/json_pointer.h"
#include "grammar/tool_calls.h"
#include "serve/openai/call_cursor.h"
#include "serve/openai/python_literal.h"

namespace octavo::openai {

using grammar::Json;
using Kind = Json::Kind;

namespace {

constexpr int kDepthMax = 16;  // maximum depth of nested schemas and references

enum Type : std::uint8_t {
  null = 1,
  integer = 2,
  number = 4,
  boolean = 8,
  object = 16,
  array = 32,
  string = 64,
  any = 128
};

// The type names of JSON Schema, and those of Python and other languages, which clients also send.
constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"null", null},      {"none", null},       {"integer", integer}, {"int", integer},
    {"int32", integer},  {"int64", integer},   {"uint", integer},    {"uint32", integer},
    {"uint64", integer}, {"long", integer},    {"short", integer},   {"unsigned", integer},
    {"number", number},  {"float", number},    {"float32", number},  {"float64", number},
    {"double", number},  {"boolean", boolean}, {"bool", boolean},    {"object", object},
    {"dict", object},    {"array", array},     {"arr", array},       {"list", array},
    {"sequence", array}, {"tuple", array},     {"string", string},   {"str", string},
    {"text", string},    {"varchar", string},  {"char", string},     {"enum", string}};

// A schema without a type is an object or an array if it has one of these keywords.
constexpr std::string_view kObjectKeywords[] = {"properties", "additionalProperties", "patternProperties",
                                                "required"};
constexpr std::string_view kArrayKeywords[] = {"items", "prefixItems", "contains"};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

Type type_named(std::string_view name) {
  const std::string plain = lower(trimmed(name));
  const auto found = std::ranges::find(kTypes, plain, &std::pair<std::string_view, Type>::first);
  return found == std::end(kTypes) ? any : found->second;
}

Type type_of(const Json& value) {
  switch (value.kind) {
    case Kind::null:
      return null;
    case Kind::boolean:
      return boolean;
    case Kind::number:
      return value.text.find_first_of(".eE") == std::string::npos ? integer : number;
    case Kind::string:
      return string;
    case Kind::array:
      return array;
    case Kind::object:
      return object;
  }
  return any;
}

// Not named `quoted`, because for a std::string the compiler would consider std::quoted.
std::string json_quoted(std::string_view text) { return '"' + grammar::json_escape(text) + '"'; }

// Calls `visit` for each value in `enum` and for the value of `const`.
template <class Visit>
void each_choice(const Json& schema, Visit&& visit) {
  if (const Json* all = schema.find("enum"))
    for (const Json& item : all->items) visit(item);
  if (const Json* one = schema.find("const")) visit(*one);
}

// Converts an integer of any size to JSON: removes a plus sign, leading zeros and underscores.
std::optional<std::string> whole_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto plain = without_underscores(text);
  if (!plain || plain->empty() || !std::ranges::all_of(*plain, digit)) return std::nullopt;
  const std::string_view digits =
      std::string_view(*plain).substr(std::min(plain->find_first_not_of('0'), plain->size() - 1));
  return fmt::format("{}{}", negative && digits != "0" ? "-" : "", digits);
}

// Converts a finite number to JSON. The result is an integer if the fraction is zero.
std::optional<std::string> any_number(std::string_view text) {
  if (auto whole = whole_number(text)) return whole;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto plain = without_underscores(text);
  if (!plain) return std::nullopt;
  text = *plain;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  constexpr double kExact = 1e15;
  if (value == 0) return "0";
  if (value == std::trunc(value) && std::abs(value) < kExact) return fmt::format("{:.0f}", value);
  return is_json(std::string(text)) ? std::string(text) : fmt::format("{}", value);
}

// Reads a JSON or Python collection that begins with the first of these brackets.
std::optional<std::string> collection(std::string_view text, std::string_view brackets) {
  if (text.empty() || !brackets.contains(text.front())) return std::nullopt;
  if (std::string json(text); is_json(json)) return json;
  std::string json;
  CallCursor cursor(text);
  if (!read_python(cursor, json) || cursor.at() != text.size()) return std::nullopt;
  return json;
}

// Converts the text to the first of these types that it matches, in vLLM's order. Returns "" if it matches
// none.
std::string as_type(std::string_view text, std::uint8_t types) {
  const std::string word = lower(text);
  if (types & null && (word == "null" || (text == "None" && !(types & string)))) return "null";
  if (types & integer)
    if (auto value = whole_number(text)) return *value;
  if (types & number)
    if (auto value = any_number(text)) return *value;
  if (types & boolean) {
    if (word == "true" || word == "1") return "true";
    if (word == "false" || word == "0") return "false";
  }
  if (types & object)
    if (auto value = collection(text, "{")) return *value;
  if (types & array)
    if (auto value = collection(text, "[(")) return *value;
  return "";
}

}  // namespace

ToolParameters::ToolParameters(std::string_view schema, bool strict) {
  if (schema.empty()) return;
  auto parsed = grammar::parse_json(schema, "tools");
  if (!parsed) return;
  schema_ = *std::move(parsed);
  if (strict) bound_texts_ = grammar::text_parameters(schema);
}

// Follows a schema's references. Returns null if a reference cannot be resolved.
const Json* ToolParameters::resolved(const Json& schema) const {
  const Json* at = &schema;
  for (int hops = 0; at; ++hops) {
    const Json* ref = at->find("$ref");
    if (!ref || !ref->is(Kind::string)) return at;
    if (hops == kDepthMax || !ref->text.starts_with('#')) return nullptr;
    const auto pointer = grammar::percent_decoded(std::string_view(ref->text).substr(1));
    if (!pointer || !(pointer->empty() || pointer->starts_with('/'))) return nullptr;
    at = grammar::at_pointer(*schema_, *pointer);
  }
  return at;
}

// schema: schema of an object. Returns the schema of a member in its `properties` (also in allOf, anyOf,
// oneOf), or null.
const Json* ToolParameters::listed(const Json& schema, std::string_view name, int depth) const {
  const Json* own = depth < kDepthMax ? resolved(schema) : nullptr;
  if (!own) return nullptr;
  if (const Json* properties = own->find("properties"))
    if (const Json* property = properties->find(name)) return property;
  for (const std::string_view key : {"allOf", "anyOf", "oneOf"})
    if (const Json* branches = own->find(key))
      for (const Json& branch : branches->items)
        if (const Json* property = listed(branch, name, depth + 1)) return property;
  return nullptr;
}

// Returns the schema of a member of an object: from `properties`, otherwise from `additionalProperties`,
// otherwise null.
const Json* ToolParameters::find(const Json& schema, std::string_view name) const {
  if (const Json* property = listed(schema, name, 0)) return property;
  const Json* own = resolved(schema);
  return own ? own->find("additionalProperties") : nullptr;
}

const Json* ToolParameters::item_schema(const Json& schema, std::size_t index) const {
  const Json* own = resolved(schema);
  if (!own) return nullptr;
  if (const Json* first = own->find("prefixItems"); first && index < first->items.size())
    return &first->items[index];
  if (const Json* items = own->find("items")) return items;
  for (const std::string_view key : {"allOf", "anyOf", "oneOf"})
    if (const Json* branches = own->find(key))
      for (const Json& branch : branches->items)
        if (const Json* target = resolved(branch))
          if (const Json* items = target->find("items")) return items;
  return nullptr;
}

ToolParameters::Types ToolParameters::types_of(const Json& schema, int depth) const {
  const Json* own = depth < kDepthMax ? resolved(schema) : nullptr;
  if (!own) return 0;
  Types types = 0;
  if (const Json* type = own->find("type")) {
    if (type->is(Kind::string)) types |= type_named(type->text);
    for (const Json& item : type->items)
      if (item.is(Kind::string)) types |= type_named(item.text);
  }
  each_choice(*own, [&](const Json& choice) { types |= type_of(choice); });
  for (const std::string_view key : {"anyOf", "oneOf", "allOf"})
    if (const Json* branches = own->find(key))
      for (const Json& branch : branches->items) types |= types_of(branch, depth + 1);
  if (const Json* nullable = own->find("nullable"); nullable && nullable->boolean) types |= null;
  const auto has = [&](std::string_view key) { return own->find(key) != nullptr; };
  if (types == 0 && std::ranges::any_of(kObjectKeywords, has)) types = object;
  if (types == 0 && std::ranges::any_of(kArrayKeywords, has)) types = array;
  return types;
}

ToolParameters::Types ToolParameters::types_of(std::string_view name, bool text) const {
  const Json* schema = schema_ ? find(*schema_, name) : nullptr;
  const Types types = schema ? types_of(*schema, 0) : 0;
  const Type unknown = text ? string : any;
  return types ? types : static_cast<Types>(unknown);
}

bool ToolParameters::is_text(std::string_view name, bool text) const {
  if (bound_texts_) return std::ranges::find(*bound_texts_, name) != bound_texts_->end();
  return types_of(name, text) == string;
}

// Returns the string in enum or const that equals the text, apart from white space around both.
const std::string* ToolParameters::choice_of(std::string_view name, std::string_view written) const {
  const Json* schema = schema_ ? find(*schema_, name) : nullptr;
  const Json* own = schema ? resolved(*schema) : nullptr;
  const std::string* found = nullptr;
  if (own)
    each_choice(*own, [&](const Json& choice) {
      if (choice.is(Kind::string) && trimmed(choice.text) == trimmed(written)) found = &choice.text;
    });
  return found;
}

std::string ToolParameters::value(std::string_view name, std::string_view written, bool text) const {
  if (is_text(name, text)) return json_quoted(written);
  const std::string plain(trimmed(written));
  if (bound_texts_ && is_json(plain)) return plain;
  const Types types = types_of(name, text);
  if (const std::string* choice = choice_of(name, written)) return json_quoted(*choice);
  if (std::string value = as_type(plain, types); !value.empty()) return fitted(name, std::move(value));
  // The value does not match the schema's types. If it is other JSON, it stays. Numbers that are too large
  // for a double become strings, because many JSON parsers read them as infinity.
  const bool number_like = plain.find_first_of("0123456789-") == 0;
  if (!(types & string) && is_json(plain) && (!number_like || any_number(plain))) return plain;
  return json_quoted(written);
}

std::string ToolParameters::unwrapped(std::string_view written) const {
  const auto json = collection(trimmed(written), "{");
  if (!json) return "";
  auto value = grammar::parse_json(*json, "arguments");
  if (!value || value->members.empty()) return "";
  for (const auto& [name, member] : value->members)
    if (!has(name)) return "";
  return fit(*schema_, *value, 0) ? grammar::to_text(*value) : *json;
}

bool ToolParameters::has(std::string_view name) const { return schema_ && listed(*schema_, name, 0); }

bool ToolParameters::typed(std::string_view name) const {
  const Json* schema = schema_ ? find(*schema_, name) : nullptr;
  return schema && types_of(*schema, 0) != 0;
}

// Converts the value to the schema's type. Returns whether the value has changed.
bool ToolParameters::fit(const Json& schema, Json& value, int depth) const {
  if (depth == kDepthMax) return false;
  bool changed = false;
  for (auto& [name, member] : value.members)
    if (const Json* own = find(schema, name)) changed |= fit(*own, member, depth + 1);
  for (std::size_t i = 0; i < value.items.size(); ++i)
    if (const Json* own = item_schema(schema, i)) changed |= fit(*own, value.items[i], depth + 1);
  const Types types = types_of(schema, 0);
  if (value.is(Kind::string) && types != 0 && !(types & string)) {
    auto read = grammar::parse_json(as_type(std::string(trimmed(value.text)), types), "arguments");
    if (!read) return changed;
    value = *std::move(read);
    fit(schema, value, depth + 1);
    return true;
  }
  if (types == string && (value.is(Kind::number) || value.is(Kind::boolean))) {
    value.text = grammar::to_text(value);
    value.kind = Kind::string;
    return true;
  }
  return changed;
}

std::string ToolParameters::fitted(std::string_view name, std::string json) const {
  const Json* schema = schema_ ? find(*schema_, name) : nullptr;
  if (!schema || bound_texts_ || !std::string_view("[{\"").contains(json.front())) return json;
  auto value = grammar::parse_json(json, "arguments");
  return value && fit(*schema, *value, 0) ? grammar::to_text(*value) : json;
}

}  // namespace octavo::openai
