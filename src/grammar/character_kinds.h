// Divides characters into kinds. Each printable ASCII character is one kind; the other characters are divided
// into groups, each of which is one kind. If an automaton can read all characters of certain kinds, one
// operation allows all tokens that consist of these kinds. llguidance precomputes "slices" of the vocabulary
// for the same purpose.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace octavo::grammar {

struct TrieNode;

// A set of kinds: bit i is kind i.
struct KindSet {
  std::uint64_t low = 0, high = 0;
  static constexpr KindSet all() { return {~std::uint64_t{0}, ~std::uint64_t{0}}; }
  static constexpr KindSet of(int kind) {
    return kind < 64 ? KindSet{std::uint64_t{1} << kind, 0} : KindSet{0, std::uint64_t{1} << (kind - 64)};
  }
  bool empty() const { return (low | high) == 0; }
  int count() const { return std::popcount(low) + std::popcount(high); }
  constexpr KindSet& operator|=(KindSet other) { return *this = {low | other.low, high | other.high}; }
  constexpr KindSet& operator&=(KindSet other) { return *this = {low & other.low, high & other.high}; }
  constexpr KindSet without(KindSet other) const { return {low & ~other.low, high & ~other.high}; }
  friend constexpr KindSet operator&(KindSet a, KindSet b) { return a &= b; }
  friend constexpr KindSet operator|(KindSet a, KindSet b) { return a |= b; }
  bool operator==(const KindSet&) const = default;
};

// Position inside a UTF-8 character: the range of the next byte, and in `left` the number of missing bytes
// (0: between characters).
struct Utf8Rest {
  std::uint8_t low, high, left;
  bool operator==(const Utf8Rest&) const = default;
};

// Returns the kind of most characters that begin with this byte, or an empty set if no character begins with
// it. For a few characters the second byte changes the kind; only the overload with two bytes considers this.
KindSet kind_of(std::uint8_t first_byte);
KindSet kind_of(std::uint8_t first_byte, std::uint8_t second_byte);
Utf8Rest utf8_rest(std::uint8_t first_byte);
inline bool begins_character(char byte) { return (static_cast<std::uint8_t>(byte) & 0xC0) != 0x80; }

// For each trie node, describes the rests of all tokens below the node. A rest is the token's bytes after the
// node.
struct TextBelow {
  // Kinds of all characters in the rests. The last character of a token may be incomplete. The set includes
  // kNoKind if a rest has bytes that are not UTF-8, or if the node is inside a character.
  std::vector<KindSet> kinds;
  // number of characters in the longest rest; 255: 255 or more
  std::vector<std::uint8_t> characters;
};
inline constexpr KindSet kNoKind = KindSet::of(127);
TextBelow text_below(std::span<const TrieNode> trie);

}  // namespace octavo::grammar
