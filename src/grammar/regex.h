// Parses regular expressions. Supports the syntax that has the same meaning in ECMA-262 (flag u) and in
// Python's re.
//
// - Classes: . (no line terminators), [a-z^...], \d \w \s and their complements (as in ECMA-262: \d and \w
//   are ASCII), \p{General_Category}.
// - Quantifiers: * + ? {m} {m,} {m,n}. Lazy quantifiers match the same texts.
// - Groups, named or unnamed.
// - ^ at the beginning and $ at the end of the pattern and of its alternatives.
//
// Errors, with their position: syntax that is not regular or has several meanings (back references,
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

// Returns an expression for all matching texts. Errors have field `field`.
Result<ExprId> add_regex(Grammar& grammar, std::string_view pattern, RegexMatch match, std::string_view field,
                         RegexFlags flags = {});

Result<Grammar> regex_grammar(std::string_view pattern);

}  // namespace octavo::grammar
