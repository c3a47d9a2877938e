// Parses grammars in the part of Lark's notation that llguidance and vLLM accept:
//
//   %import common.WS
//   %ignore WS
//   start: (item ",")* item        // a comment
//   ?item.2: NAME "=" value~1..3 -> pair
//     | "[" start "]" | ["nothing"i]
//   value: /[0-9]+/ | NAME | <|special|> | %json {"type": "array"}
//   NAME: ("a".."z" | "_")+
//
// Rules have lower-case names, terminals upper-case names. As with Lark's default parser (Earley, dynamic
// lexer), any division of a text into terminals is valid.
//
// Ignored terminals may occur before each terminal of a rule, and at the end. The parser accepts
// priorities, aliases and the modifiers ? and ! of rules, but they have no effect on the language.
//
// Errors have line and column. Not supported: templates, attributes, %declare, %extend, %override, imports
// except from `common`, recursive terminals, and some regular expressions.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

// Returns true if the text is Lark, and false if it is GBNF: the first definition contains ::=.
bool is_lark(std::string_view text);

// Adds the rules and returns the rule `start`, or the first rule if `start` is missing.
Result<RuleId> add_lark(Grammar& grammar, std::string_view text, std::string_view field);

// Both functions parse Lark if is_lark() is true, otherwise EBNF (GBNF).
Result<RuleId> add_ebnf_or_lark(Grammar& grammar, std::string_view text, std::string_view field);
Result<Grammar> ebnf_or_lark_grammar(std::string_view text);

}  // namespace octavo::grammar
