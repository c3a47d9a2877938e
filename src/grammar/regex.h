//
// Regular expressions: the subset with the same meaning in ECMA-262 (with the u flag) and in Python's re.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/regex_parser.h"

namespace octavo::grammar {

enum class RegexMatch : std::uint8_t {
  full,    // the pattern matches the whole text
  search,  // the pattern matches a part of the text (JSON Schema's `pattern`)
};

// Adds the expression of all matching texts. Errors name `field`.
Result<ExprId> add_regex(Grammar& grammar, std::string_view pattern, RegexMatch match, std::string_view field,
                         RegexFlags flags = {});

Result<Grammar> regex_grammar(std::string_view pattern);

}  // namespace octavo::grammar
