// Keywords of JSON Schema: the role of each keyword, and the drafts that have it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::grammar {

// Drafts in chronological order; the code compares them with < and >.
enum class Dialect : std::uint8_t { draft4, draft6, draft7, draft2019, draft2020 };

// Returns the latest draft for an unknown or missing `$schema`.
Dialect dialect_of(std::string_view schema_uri);

enum class KeywordRole : std::uint8_t {
  constrains,  // constrains values, so it must be enforced
  // has no effect alone: belongs to another keyword, or only contains subschemas
  serves,
  annotates,
  // unknown in this draft; does not constrain values
  unknown,
};
KeywordRole role_of(std::string_view keyword, Dialect dialect);

inline constexpr std::string_view kReferences[] = {"$ref", "$dynamicRef", "$recursiveRef"};
bool is_reference(std::string_view keyword);

// If the unknown keyword differs only in case or in one letter from a keyword that constrains, returns that
// keyword.
std::optional<std::string_view> likely_constraint(std::string_view unknown);

// Returns the type that was probably meant, such as "string" for "str", or "".
std::string_view likely_type(std::string_view unknown);

// Logs once for each name that an unknown keyword or format is ignored. Names come from clients, so they are
// shortened and escaped, and the number of logged names is limited.
void log_ignored(std::string_view what, std::string_view name, std::optional<std::string_view> meant);

}  // namespace octavo::grammar
