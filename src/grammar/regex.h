// Regular expressions: the subset that ECMA-262 (with the u flag) and Python's re read alike.
//
// Classes: . (no line terminators), [a-z^...], \d \w \s (as ECMA-262: \d and \w are ASCII) and their
// complements,
// \p{General_Category}. Quantifiers * + ? {m} {m,} {m,n}, also lazy ones, which match the same texts. Groups,
// named or not. ^ and $ at the edges of the pattern and of its alternatives. What is not regular or does not
// read alike (back references, lookaround, \b, inline flags, possessive quantifiers, anchors inside) is
// refused with its position.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/regex_parser.h"

namespace octavo::grammar {

enum class RegexMatch : std::uint8_t {
  full,    // the pattern matches the whole text
  search,  // the pattern matches somewhere in the text (JSON Schema's `pattern`)
};

// Adds the expression of all texts that match. Errors name `field`.
Result<ExprId> add_regex(Grammar& grammar, std::string_view pattern, RegexMatch match, std::string_view field,
                         RegexFlags flags = {});

Result<Grammar> regex_grammar(std::string_view pattern);

}  // namespace octavo::grammar
