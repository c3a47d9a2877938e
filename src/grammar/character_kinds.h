// Kinds of characters, such as lower-case letters. If every character of some kinds leads an automaton on in
// the same way, all tokens of these characters are allowed at once (llguidance precomputes "slices" of the
// vocabulary for the same purpose).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/vocabulary.h"

namespace octavo::grammar {

// Bit i: the kind i. Each punctuation mark is a kind; characters beyond ASCII are divided by their first
// byte.
using KindSet = std::uint64_t;

// The position inside a UTF-8 character, as the range of bytes that may come next; `left`: number of these
// bytes, 0 between characters.
struct Utf8Rest {
  std::uint8_t low, high, left;
};

// Set with the kind of the character that begins with this byte; 0 if none does.
KindSet kind_of(std::uint8_t first_byte);
Utf8Rest utf8_rest(std::uint8_t first_byte);

// For each trie node: the kinds of all characters after the node in the tokens below it. The last character
// of a token may be incomplete. kNoKind is included if the tokens contain other bytes, or if the node is
// inside a character.
inline constexpr KindSet kNoKind = KindSet{1} << 63;
std::vector<KindSet> kinds_below(std::span<const TrieNode> trie);

}  // namespace octavo::grammar
