// Parses EBNF in the notation of llama.cpp's GBNF:
//
//   root  ::= "yes" | "no" tail{0,3}     # a comment
//   tail  ::= [a-z0-9_] | [^\n] | . | (root)* | "\x41\u00e9"? | <|end|> | <[128001]>
//
// Names consist of letters, digits, - and _. <...> is one special token, by its text or by its id.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

// Adds the rules and returns the rule `root`. Errors have field `field`, and contain line and column.
Result<RuleId> add_ebnf(Grammar& grammar, std::string_view text, std::string_view field);

}  // namespace octavo::grammar
