// Every bound of this room in one place. Reaching one is an error that names it, never a looser grammar.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::grammar {

inline constexpr std::size_t kJsonBytesMax = 2u << 20;      // one JSON Schema
inline constexpr std::size_t kNotationBytesMax = 1u << 20;  // one EBNF or Lark text
inline constexpr std::size_t kRegexBytesMax = 256u << 10;   // one regex
inline constexpr std::size_t kCategoryRangesMax = 200'000;  // of characters, in the \p{..} of one regex
inline constexpr std::size_t kClassRangesMax = 20'000;      // and in its different classes
inline constexpr int kNestingMax = 100;                     // groups inside one another in a regex or EBNF
inline constexpr int kJsonDepthMax = 200;                   // levels of a JSON text
inline constexpr int kExprDepthMax = 400;                   // levels of an expression tree
inline constexpr std::size_t kExprsMax = 500'000;           // expressions of one grammar
inline constexpr std::size_t kRulesMax = 100'000;           // rules of one grammar
inline constexpr std::uint32_t kRepeatMax = 1'000'000'000;  // bounds of {m,n}

// A repetition is unrolled into automaton states up to this size, and counted at run time beyond it.
inline constexpr std::size_t kUnrollStatesMax = 48;

inline constexpr std::size_t kNfaStatesMax = 400'000;    // states of one grammar before determinization
inline constexpr std::size_t kDfaStatesMax = 40'000;     // states of one regular language inside a schema
inline constexpr std::size_t kPatternStatesMax = 12'000;  // those of one pattern alone
// Determinization gives up (and the parser follows sets of states) when it makes more than
// kDfaGrowthMax * states + kDfaSlackStates states.
inline constexpr std::size_t kDfaGrowthMax = 2;
inline constexpr std::size_t kDfaSlackStates = 400;
inline constexpr std::size_t kDeterminizeWorkMax = 4'000'000;  // nodes visited for all automata of a grammar
inline constexpr std::size_t kRegularWorkMax = 3'000'000;      // for one regular language inside a schema

inline constexpr std::size_t kTokenBytesMax = 4096;  // one vocabulary entry
// Limit on the work of one mask or token: readings of the text that are followed, and trie nodes (each costs
// 1 / kWalkShare). About 50 ms.
inline constexpr std::int64_t kWorkMax = 2'000'000;
inline constexpr std::size_t kWalkShare = 8;
// Limit for a thread that must not wait: about 200 us. Here a trie node costs 1, since a first walk misses
// the processor's caches. The same limit holds for the bytes that are cut into tokens.
inline constexpr std::int64_t kStepWork = 6'000;
inline constexpr std::size_t kStepBytes = 256;
inline constexpr std::int64_t kAheadWork =
    20'000;  // for masks computed with the grammar, before they are needed
inline constexpr std::int64_t kWorkPerToken = 1'000;  // of a text that is read again
inline constexpr std::size_t kParserBytesPerToken = 2048;  // where members come in any order
inline constexpr std::size_t kShareStatesMax = 500;   // size of a rule whose masks are shared across grammars

inline constexpr std::size_t kSchemaWorkMax =
    2'400'000;  // steps of reading a schema, about a tenth of a microsecond each
inline constexpr std::size_t kListBytesMax = 600'000;  // trie of the texts of one enum or choice
inline constexpr int kSubschemasMax = 20'000;  // different conjunctions of subschemas in one JSON Schema
inline constexpr int kAlternativesMax = 512;   // branches of one subschema after distribution
inline constexpr int kSchemaDepthMax = 100;    // allOf, anyOf, not, $ref inside one another
inline constexpr int kPatternGroupsMax = 5;    // patternProperties that constrain one object
inline constexpr std::size_t kAnyOrderMax =
    128;  // members of an object, or values under uniqueItems, in any order
inline constexpr std::size_t kUniqueBytesMax = 1u << 20;  // of the items of such arrays of one text
inline constexpr std::uint32_t kMultipleOfMax = 2000;  // integer part of a multipleOf automaton
inline constexpr std::size_t kNumberDigitsMax = 400;   // digits of a numeric bound
inline constexpr std::size_t kGraphNodesMax = 50'000;  // nodes of the automaton of one object or array

}  // namespace octavo::grammar
