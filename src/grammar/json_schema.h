// JSON Schema (draft 2020-12, and draft-7 where it differs) as a grammar of JSON texts that are valid under
// it.
//
// Sound, not complete: every text of the grammar is valid, but not every valid text is in the grammar
// (properties come in schema order, numbers within limits have no exponent, ...). What cannot be enforced is
// refused with the keyword and its JSON pointer. docs/grammar.md lists the keywords.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

struct JsonOptions {
  enum class Whitespace : std::uint8_t {
    none,      // compact: no space anywhere
    flexible,  // up to whitespace_max characters of JSON whitespace wherever JSON allows it
  };
  Whitespace whitespace = Whitespace::flexible;
  std::uint32_t whitespace_max = 64;

  // Objects that list `properties` and say nothing of others have no others.
  bool strict = true;
  // Properties may come in any order; for objects of at most kAnyOrderMax properties.
  bool any_order = false;
};

Result<Grammar> json_schema_grammar(std::string_view schema, const JsonOptions& options = {});

// Any JSON object (response_format json_object).
Result<Grammar> json_object_grammar(const JsonOptions& options = {});

// Adds the rule of a schema's values to a grammar that has others.
Result<RuleId> add_json_schema(Grammar& grammar, std::string_view schema, const JsonOptions& options,
                               std::string_view field);

}  // namespace octavo::grammar
