// Kinds of characters, such as lower-case letters. If all characters of some kinds lead an automaton to the
// same state, all tokens of these characters are allowed in one operation. llguidance precomputes "slices"
// of the vocabulary for the same purpose.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/vocabulary.h"

namespace octavo::grammar {

// A set of kinds: bit i is kind i. Each punctuation mark is a kind. Characters beyond ASCII have one kind
// for each first byte.
using KindSet = std::uint64_t;

// The position inside a UTF-8 character: the range of the next byte, and the number of bytes left (0
// between characters).
struct Utf8Rest {
  std::uint8_t low, high, left;
};

// Returns the kind of the character that begins with this byte, as a set; 0 if no character does.
KindSet kind_of(std::uint8_t first_byte);
Utf8Rest utf8_rest(std::uint8_t first_byte);

// Returns, for each trie node, the kinds of all characters after the node in the tokens below it. The last
// character of a token may be incomplete. The set includes kNoKind if the tokens contain other bytes, or if
// the node is inside a character.
inline constexpr KindSet kNoKind = KindSet{1} << 63;
std::vector<KindSet> kinds_below(std::span<const TrieNode> trie);

}  // namespace octavo::grammar
