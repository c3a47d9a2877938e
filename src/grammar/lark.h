//
// Grammars in the notation of Lark, as far as llguidance and vLLM accept it:
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

// Returns whether a text is Lark and not GBNF: its first definition has no ::=.
bool is_lark(std::string_view text);

// Adds the rules of a Lark text to a grammar. Returns the rule `start`, or the first rule without it.
Result<RuleId> add_lark(Grammar& grammar, std::string_view text, std::string_view field);

// Reads EBNF or Lark, as is_lark() decides.
Result<RuleId> add_ebnf_or_lark(Grammar& grammar, std::string_view text, std::string_view field);
Result<Grammar> ebnf_or_lark_grammar(std::string_view text);

}  // namespace octavo::grammar
