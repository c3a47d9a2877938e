// Parses regular expressions: the subset that means the same in ECMA-262 (flag u) and in Python's re.
//
// - Classes: . (no line terminators), [a-z^...], \d \w \s and their complements (as in ECMA-262: \d and \w
//   are ASCII), \p{General_Category}.
// - Quantifiers: * + ? {m} {m,} {m,n}. Lazy ones match the same texts.
// - Groups, named or unnamed.
// - ^ and $ at both ends of the pattern and of its alternatives.
//
// Errors with the position: constructs that are not regular or have several meanings (back references,
// lookaround, other inline flags, possessive quantifiers, other anchors).
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

// Returns an expression of all matching texts. Errors name `field`.
Result<ExprId> add_regex(Grammar& grammar, std::string_view pattern, RegexMatch match, std::string_view field,
                         RegexFlags flags = {});

Result<Grammar> regex_grammar(std::string_view pattern);

}  // namespace octavo::grammar
