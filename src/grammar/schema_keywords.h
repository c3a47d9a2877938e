// The keywords of JSON Schema: which of them say something of values, and since or up to which draft.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::grammar {

// Drafts in their order; the numbers are those of the table of keywords.
enum class Dialect : std::uint8_t { draft4, draft6, draft7, draft2019, draft2020 };

// Dialect of a `$schema` value; the latest for others and none.
Dialect dialect_of(std::string_view schema_uri);

enum class KeywordRole : std::uint8_t {
  constrains,  // must be enforced
  serves,      // is read with another keyword, or names and holds subschemas
  annotates,   // says nothing of values
  unknown,     // the same, but no draft up to this one has it
};
KeywordRole role_of(std::string_view keyword, Dialect dialect);

// Keywords that refer to another schema.
inline constexpr std::string_view kReferences[] = {"$ref", "$dynamicRef", "$recursiveRef"};
bool is_reference(std::string_view keyword);

// The known constraint that an unknown keyword probably means: it differs only in case, or in one letter.
std::optional<std::string_view> likely_constraint(std::string_view unknown);

// Says in the log, once for each name, that an unknown keyword (or format) is ignored. Names come from
// clients: they are cut and escaped, and only the first of them are logged.
void log_ignored(std::string_view what, std::string_view name, std::optional<std::string_view> meant);

}  // namespace octavo::grammar
