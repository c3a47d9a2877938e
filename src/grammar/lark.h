// Grammars in the notation of Lark, as far as llguidance and vLLM accept it:
//
//   %import common.WS
//   %ignore WS
//   start: (item ",")* item        // a comment
//   ?item.2: NAME "=" value~1..3 -> pair
//       | "[" start "]" | ["nothing"i]
//   value: /[0-9]+/ | NAME | <|special|> | %json {"type": "array"}
//   NAME: ("a".."z" | "_")+
//
// Rules have lower-case names, terminals upper-case ones. The language is what Lark's default (Earley,
// dynamic) parser reads: any division of the text into terminals counts, so priorities, which rank readings,
// change nothing and are ignored, as are aliases and the modifiers ? ! of rules. Ignored terminals may
// precede each terminal of a rule and at the end. Refused with line and column: templates, attributes,
// %declare, %extend, %override, imports from elsewhere than `common`, recursive terminals, and what regular
// expressions refuse.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

// Whether a text is Lark rather than GBNF: its first definition has no ::=.
bool is_lark(std::string_view text);

// Adds the rules of a Lark text to a grammar; returns the rule `start`, or the first rule if there is no
// `start`.
Result<RuleId> add_lark(Grammar& grammar, std::string_view text, std::string_view field);

// Either notation, by is_lark().
Result<RuleId> add_ebnf_or_lark(Grammar& grammar, std::string_view text, std::string_view field);
Result<Grammar> ebnf_or_lark_grammar(std::string_view text);

}  // namespace octavo::grammar
