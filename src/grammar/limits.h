// Limits of grammars. If a grammar exceeds a limit, the request gets an error that names the limit.
// Constraints are never dropped to meet a limit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::grammar {

inline constexpr std::size_t kJsonBytesMax = 2u << 20;      // bytes of one JSON Schema
inline constexpr std::size_t kNotationBytesMax = 1u << 20;  // bytes of one EBNF or Lark text
inline constexpr std::size_t kRegexBytesMax = 256u << 10;
inline constexpr std::size_t kCategoryRangesMax = 200'000;  // character ranges in all \p{..} of one regex
// character ranges in all distinct classes of one regex
inline constexpr std::size_t kClassRangesMax = 20'000;
inline constexpr int kNestingMax = 100;                     // nested groups in a regex or EBNF text
inline constexpr int kJsonDepthMax = 200;                   // nested arrays and objects in a JSON text
inline constexpr int kExprDepthMax = 400;                   // height of an expression tree
inline constexpr std::size_t kExprsMax = 500'000;           // expressions of one grammar
inline constexpr std::size_t kRulesMax = 100'000;           // rules of one grammar
inline constexpr std::uint32_t kRepeatMax = 1'000'000'000;  // m and n in a repetition {m,n}

// A repetition that would have more automaton states than this is not unrolled, but counted at run time.
inline constexpr std::size_t kUnrollStatesMax = 48;

inline constexpr std::size_t kNfaStatesMax = 400'000;    // states of one grammar before determinization
inline constexpr std::size_t kDfaStatesMax = 40'000;     // states of one regular language inside a schema
inline constexpr std::size_t kPatternStatesMax = 12'000;
// If determinization would need more than kDfaGrowthMax * states + kDfaSlackStates states, the automaton
// stays nondeterministic.
inline constexpr std::size_t kDfaGrowthMax = 2;
inline constexpr std::size_t kDfaSlackStates = 400;
// nodes that may be visited for all automata of a grammar
inline constexpr std::size_t kDeterminizeWorkMax = 4'000'000;
// nodes that may be visited for one regular language inside a schema
inline constexpr std::size_t kRegularWorkMax = 3'000'000;

inline constexpr std::size_t kTokenBytesMax = 4096;  // bytes of one vocabulary entry
// Maximum work for one mask or one token: about 50 ms. One unit is one item (parse_states.h) that the parser
// follows, or kWalkShare trie nodes.
inline constexpr std::int64_t kWorkMax = 2'000'000;
inline constexpr std::size_t kWalkShare = 8;
// Maximum work in a call that must not wait (Matcher::try_*): about 200 us. Here one trie node is one unit,
// because a first walk misses the CPU caches. kStepBytes: maximum text that such a call tokenizes.
inline constexpr std::int64_t kStepWork = 6'000;
inline constexpr std::size_t kStepBytes = 256;
inline constexpr std::int64_t kAheadWork =
    20'000;  // work for masks that are computed in advance, when the grammar is compiled
// additional work for each token if a text is parsed again
inline constexpr std::int64_t kWorkPerToken = 1'000;
// additional parser memory for each token of the text if the grammar has rules with parts in any order
inline constexpr std::size_t kParserBytesPerToken = 2048;
// a rule with more states than this does not share masks with other grammars
inline constexpr std::size_t kShareStatesMax = 500;

inline constexpr std::size_t kSchemaWorkMax = 2'400'000;  // steps for reading a schema, of about 0.1 us each
inline constexpr std::size_t kListBytesMax = 600'000;     // bytes in the trie of one enum or choice
// distinct conjunctions of subschemas in one JSON Schema; each becomes a rule
inline constexpr int kSubschemasMax = 20'000;
// branches of one subschema after anyOf and oneOf are expanded
inline constexpr int kAlternativesMax = 512;
inline constexpr int kSchemaDepthMax = 100;    // nested allOf, anyOf, not, $ref
inline constexpr int kPatternGroupsMax = 5;    // patternProperties that constrain one object
inline constexpr std::size_t kAnyOrderMax =
    256;  // members of an object whose order is free, or listed values of a uniqueItems array
// bytes of all items in all uniqueItems arrays of a text
inline constexpr std::size_t kUniqueBytesMax = 1u << 20;
// largest integer part of a multipleOf divisor
inline constexpr std::uint32_t kMultipleOfMax = 2000;
inline constexpr std::size_t kNumberDigitsMax = 400;   // digits of a numeric bound
inline constexpr std::size_t kGraphNodesMax = 50'000;  // nodes of the automaton of one object or array

}  // namespace octavo::grammar
