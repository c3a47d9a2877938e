// The keywords of JSON Schema: which of them constrain values, and in which drafts they exist.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::grammar {

// Drafts in chronological order. The table of keywords uses the numeric values.
enum class Dialect : std::uint8_t { draft4, draft6, draft7, draft2019, draft2020 };

// Returns the dialect of a `$schema` value, or the latest one if the value is unknown or missing.
Dialect dialect_of(std::string_view schema_uri);

enum class KeywordRole : std::uint8_t {
  constrains,  // must be enforced
  serves,      // read together with another keyword, or contains only subschemas
  annotates,   // does not constrain values
  unknown,     // unknown in all drafts up to this one; does not constrain values
};
KeywordRole role_of(std::string_view keyword, Dialect dialect);

inline constexpr std::string_view kReferences[] = {"$ref", "$dynamicRef", "$recursiveRef"};
bool is_reference(std::string_view keyword);

// Returns the known constraint that an unknown keyword probably means: it differs in case or in one letter.
std::optional<std::string_view> likely_constraint(std::string_view unknown);

// Returns the type that an unknown type probably means, or "" if none is similar.
std::string_view likely_type(std::string_view unknown);

// Logs that an unknown keyword (or format) is ignored, once for each name. Names come from clients, so they
// are shortened and escaped, and their number is limited.
void log_ignored(std::string_view what, std::string_view name, std::optional<std::string_view> meant);

}  // namespace octavo::grammar
