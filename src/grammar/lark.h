// Grammars in the notation of Lark, as far as llguidance and vLLM accept it:
//
//   %import common.WS
//   %ignore WS
//   start: (item ",")* item        // a comment
//   ?item.2: NAME "=" value~1..3 -> pair
//     | "[" start "]" | ["nothing"i]
//   value: /[0-9]+/ | NAME | <|special|> | %json {"type": "array"}
//   NAME: ("a".."z" | "_")+
//
// Names of rules are lower-case, names of terminals upper-case. The language is that of Lark's default
// parser (Earley, dynamic): a text may be divided into terminals in any way.
//
// Ignored: priorities, because they only rank these ways; aliases; the modifiers ? and ! of rules. Ignored
// terminals may occur before each terminal of a rule, and at the end.
//
// Errors, with line and column: templates, attributes, %declare, %extend, %override, imports except from
// `common`, recursive terminals, and unsupported parts of regular expressions.
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
