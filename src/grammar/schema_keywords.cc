#include "grammar/schema_keywords.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "grammar/json_value.h"

namespace octavo::grammar {

namespace {

using enum Dialect;
using enum KeywordRole;

struct Keyword {
  std::string_view name;
  KeywordRole role = constrains;
  Dialect since = draft4, until = draft2020;
};
// `dependencies`, `definitions` and `additionalItems` are allowed in all drafts, because many schemas use
// them in the wrong draft.
constexpr Keyword kKeywords[] = {
    {"type"},
    {"enum"},
    {"const", constrains, draft6},
    {"minimum"},
    {"maximum"},
    {"exclusiveMinimum"},
    {"exclusiveMaximum"},
    {"multipleOf"},
    {"minLength"},
    {"maxLength"},
    {"pattern"},
    {"format"},
    {"items"},
    {"prefixItems", constrains, draft2020},
    {"additionalItems", serves},
    {"minItems"},
    {"maxItems"},
    {"uniqueItems"},
    {"contains", constrains, draft6},
    {"minContains", serves, draft2019},
    {"maxContains", serves, draft2019},
    {"unevaluatedItems", constrains, draft2019},
    {"properties"},
    {"patternProperties"},
    {"additionalProperties"},
    {"propertyNames", constrains, draft6},
    {"required"},
    {"minProperties"},
    {"maxProperties"},
    {"unevaluatedProperties", constrains, draft2019},
    {"dependencies"},
    {"dependentRequired", constrains, draft2019},
    {"dependentSchemas", constrains, draft2019},
    {"allOf"},
    {"anyOf"},
    {"oneOf"},
    {"not"},
    {"if", constrains, draft7},
    {"then", serves, draft7},
    {"else", serves, draft7},
    {"$ref"},
    {"$recursiveRef", constrains, draft2019, draft2019},
    {"$dynamicRef", constrains, draft2020},
    {"$schema", serves},
    {"$id", serves, draft6},
    {"id", serves, draft4, draft4},
    {"$anchor", serves, draft2019},
    {"$recursiveAnchor", serves, draft2019, draft2019},
    {"$dynamicAnchor", serves, draft2020},
    {"$defs", serves},
    {"definitions", serves},
    {"nullable", serves},  // from OpenAPI 3.0; handled with `type`
    {"$vocabulary", annotates},
    {"$comment", annotates},
    {"title", annotates},
    {"description", annotates},
    {"default", annotates},
    {"example", annotates},
    {"examples", annotates},
    {"deprecated", annotates},
    {"readOnly", annotates},
    {"writeOnly", annotates},
    {"contentMediaType", annotates},
    {"contentEncoding", annotates},
    {"contentSchema", annotates},
};

// Returns true if the texts differ in one letter (added, removed or changed), or by a swap of two adjacent
// letters.
bool one_slip(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  const auto first = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  a.remove_prefix(first);
  b.remove_prefix(first);
  if (a.size() < b.size()) return a == b.substr(1);
  if (a.empty() || a.substr(1) == b.substr(1)) return true;
  return a.size() > 1 && a[0] == b[1] && a[1] == b[0] && a.substr(2) == b.substr(2);
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

}  // namespace

Dialect dialect_of(std::string_view schema_uri) {
  constexpr std::array<std::pair<std::string_view, Dialect>, 4> kNames = {
      {{"draft-04", draft4}, {"draft-06", draft6}, {"draft-07", draft7}, {"2019-09", draft2019}}};
  for (const auto& [name, dialect] : kNames)
    if (schema_uri.contains(name)) return dialect;
  return draft2020;
}

KeywordRole role_of(std::string_view keyword, Dialect dialect) {
  if (keyword.starts_with("x-")) return annotates;
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Keyword*> map;
    for (const Keyword& each : kKeywords) map.emplace(each.name, &each);
    return map;
  }();
  const auto it = by_name.find(keyword);
  if (it == by_name.end() || dialect < it->second->since || dialect > it->second->until) return unknown;
  return it->second->role;
}

bool is_reference(std::string_view keyword) {
  return std::ranges::find(kReferences, keyword) != std::end(kReferences);
}

std::optional<std::string_view> likely_constraint(std::string_view unknown) {
  // Keywords of at most this length, such as `if` and `not`, are suggested only if the case differs, because
  // they are similar to many words.
  constexpr std::size_t kShort = 3;
  // a name like this is probably a deliberate extension
  if (unknown.starts_with('_') || unknown.starts_with('$')) return std::nullopt;
  for (const Keyword& keyword : kKeywords)
    if (keyword.role == constrains && unknown != keyword.name &&
        (lower_case(unknown) == lower_case(keyword.name) ||
         (unknown.size() >= kShort && keyword.name.size() > kShort && one_slip(unknown, keyword.name))))
      return keyword.name;
  return std::nullopt;
}

std::string_view likely_type(std::string_view unknown) {
  constexpr std::string_view kTypes[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
  // Names of types in programming languages, with the JSON Schema type that was probably meant.
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"str", "string"},    {"text", "string"},   {"char", "string"},   {"int", "integer"},
      {"long", "integer"},  {"float", "number"},  {"double", "number"}, {"decimal", "number"},
      {"bool", "boolean"},  {"dict", "object"},   {"map", "object"},    {"struct", "object"},
      {"list", "array"},    {"tuple", "array"},   {"nil", "null"},      {"none", "null"},
      {"nonetype", "null"}, {"undefined", "null"}};
  const std::string name = lower_case(unknown);
  for (const auto& [other, type] : kOthers)
    if (name == other) return type;
  for (const std::string_view type : kTypes)
    if (one_slip(name, type)) return type;
  return "";
}

void log_ignored(std::string_view what, std::string_view name, std::optional<std::string_view> meant) {
  constexpr std::size_t kNamesMax = 256, kNameBytesMax = 60;
  static std::mutex mutex;
  static std::set<std::string, std::less<>> logged;
  const std::string shown = json_escape(name.substr(0, kNameBytesMax));
  {
    const std::scoped_lock lock(mutex);
    if (logged.size() >= kNamesMax || !logged.insert(fmt::format("{} {}", what, shown)).second) return;
  }
  if (meant)
    log_warning("JSON Schema: the {} '{}' is not known and is ignored; did you mean '{}'?", what, shown,
                *meant);
  else
    log_info("JSON Schema: the {} '{}' is not known and is ignored", what, shown);
}

}  // namespace octavo::grammar
