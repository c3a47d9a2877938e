// The limits of this module. Exceeding one is an error that names it. The grammar is never relaxed instead.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::grammar {

inline constexpr std::size_t kJsonBytesMax = 2u << 20;      // bytes of one JSON Schema
inline constexpr std::size_t kNotationBytesMax = 1u << 20;  // bytes of one EBNF or Lark text
inline constexpr std::size_t kRegexBytesMax = 256u << 10;
inline constexpr std::size_t kCategoryRangesMax = 200'000;  // character ranges in all \p{..} of one regex
inline constexpr std::size_t kClassRangesMax = 20'000;      // character ranges in all distinct classes of
                                                            // one regex
inline constexpr int kNestingMax = 100;                     // nested groups in a regex or EBNF text
inline constexpr int kJsonDepthMax = 200;                   // levels of a JSON text
inline constexpr int kExprDepthMax = 400;                   // levels of an expression tree
inline constexpr std::size_t kExprsMax = 500'000;           // expressions of one grammar
inline constexpr std::size_t kRulesMax = 100'000;           // rules of one grammar
inline constexpr std::uint32_t kRepeatMax = 1'000'000'000;  // bounds of {m,n}

// Maximum number of automaton states to which a repetition is unrolled. Larger ones are counted at run
// time.
inline constexpr std::size_t kUnrollStatesMax = 48;

inline constexpr std::size_t kNfaStatesMax = 400'000;    // states of one grammar before determinization
inline constexpr std::size_t kDfaStatesMax = 40'000;     // states of one regular language inside a schema
inline constexpr std::size_t kPatternStatesMax = 12'000;
// Determinization stops at kDfaGrowthMax * states + kDfaSlackStates states; the parser then follows sets of
// states.
inline constexpr std::size_t kDfaGrowthMax = 2;
inline constexpr std::size_t kDfaSlackStates = 400;
inline constexpr std::size_t kDeterminizeWorkMax = 4'000'000;  // visited nodes for all automata of a grammar
// visited nodes for one regular language inside a schema
inline constexpr std::size_t kRegularWorkMax = 3'000'000;

inline constexpr std::size_t kTokenBytesMax = 4096;  // bytes of one vocabulary entry
// Limit on the work for one mask or token, about 50 ms. The unit is one reading that the parser follows. A
// trie node costs 1 / kWalkShare.
inline constexpr std::int64_t kWorkMax = 2'000'000;
inline constexpr std::size_t kWalkShare = 8;
// Limit for a thread that must not wait, about 200 us. Here a trie node costs 1, because a first walk
// misses the processor's caches. kStepBytes also limits the bytes to tokenise.
inline constexpr std::int64_t kStepWork = 6'000;
inline constexpr std::size_t kStepBytes = 256;
inline constexpr std::int64_t kAheadWork =
    20'000;  // for masks that are computed in advance, with the grammar
inline constexpr std::int64_t kWorkPerToken = 1'000;       // per token of a text that is read again
inline constexpr std::size_t kParserBytesPerToken = 2048;  // for rules whose parts may have any order
inline constexpr std::size_t kShareStatesMax = 500;        // states of a rule whose masks grammars share

inline constexpr std::size_t kSchemaWorkMax = 2'400'000;  // steps of reading a schema, about 0.1 us each
inline constexpr std::size_t kListBytesMax = 600'000;     // bytes in the trie of one enum or choice
inline constexpr int kSubschemasMax = 20'000;  // distinct conjunctions of subschemas in one JSON Schema
inline constexpr int kAlternativesMax = 512;   // branches of one subschema after distribution
inline constexpr int kSchemaDepthMax = 100;    // nested allOf, anyOf, not, $ref
inline constexpr int kPatternGroupsMax = 5;    // patternProperties that constrain one object
inline constexpr std::size_t kAnyOrderMax =
    256;  // members of an object in any order, or values under uniqueItems
inline constexpr std::size_t kUniqueBytesMax = 1u << 20;  // bytes of the items of all such arrays in a text
inline constexpr std::uint32_t kMultipleOfMax = 2000;  // integer part of a multipleOf automaton
inline constexpr std::size_t kNumberDigitsMax = 400;   // digits of a numeric bound
inline constexpr std::size_t kGraphNodesMax = 50'000;  // nodes of the automaton of one object or array

}  // namespace octavo::grammar
