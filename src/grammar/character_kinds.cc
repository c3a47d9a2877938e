#include "grammar/character_kinds.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "grammar/vocabulary.h"

namespace octavo::grammar {

namespace {

// Kinds 1 to 3 are Unicode blocks that contain the non-ASCII spaces: U+1680, U+2000 to U+205F, U+3000.
// Patterns such as \S exclude these spaces.
constexpr int kOgham = 1, kPunctuation = 2, kCjkPunctuation = 3, kFirst = 4;

constexpr std::array<KindSet, 256> make_kinds() {
  std::array<KindSet, 256> kinds{};
  int next = kFirst;
  const auto kind = [&](unsigned low, unsigned high) {
    for (unsigned byte = low; byte <= high; ++byte) kinds[byte] = KindSet::of(next);
    ++next;
  };
  kind(0, 0x1F);
  kind('\t', '\n');
  for (unsigned byte = ' '; byte <= 0x7F; ++byte) kind(byte, byte);
  kind(0xC2, 0xC2);
  kind(0xC3, 0xC3);
  for (unsigned byte = 0xC4; byte <= 0xDC; byte += 4) kind(byte, byte + 3);
  for (unsigned byte = 0xE0; byte <= 0xE3; ++byte) kind(byte, byte);
  kind(0xE4, 0xE9);
  kind(0xEA, 0xED);
  kind(0xEE, 0xEF);
  kind(0xF0, 0xF4);
  return kinds;
}
constexpr std::array<KindSet, 256> kKinds = make_kinds();
static_assert(kKinds[0xF4].without(kNoKind).high != 0);

}  // namespace

KindSet kind_of(std::uint8_t first_byte) { return kKinds[first_byte]; }

KindSet kind_of(std::uint8_t first_byte, std::uint8_t second_byte) {
  if (first_byte == 0xE1 && second_byte == 0x9A) return KindSet::of(kOgham);
  if (first_byte == 0xE2 && second_byte <= 0x81) return KindSet::of(kPunctuation);
  if (first_byte == 0xE3 && second_byte == 0x80) return KindSet::of(kCjkPunctuation);
  return kind_of(first_byte);
}

Utf8Rest utf8_rest(std::uint8_t first_byte) {
  const std::uint8_t left = first_byte < 0xC2 ? 0 : first_byte < 0xE0 ? 1 : first_byte < 0xF0 ? 2 : 3;
  const std::uint8_t low = first_byte == 0xE0 ? 0xA0 : first_byte == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t high = first_byte == 0xED ? 0x9F : first_byte == 0xF4 ? 0x8F : 0xBF;
  return {low, high, left};
}

TextBelow text_below(std::span<const TrieNode> trie) {
  TextBelow below{std::vector<KindSet>(trie.size()), std::vector<std::uint8_t>(trie.size())};
  std::vector<KindSet> own(trie.size());
  std::vector<Utf8Rest> rests(trie.size());
  std::vector<std::uint32_t> parents(trie.size()), path{0};
  for (std::uint32_t i = 1; i < trie.size(); ++i) {
    const std::uint8_t byte = trie[i].byte;
    path.resize(trie[i].depth);
    parents[i] = path.back();
    path.push_back(i);
    const Utf8Rest before = rests[parents[i]];
    if (before.left == 0) {
      // A token may end after this byte. Then the incomplete character counts as kind_of(byte).
      own[i] = kind_of(byte).empty() ? kNoKind : kind_of(byte);
      rests[i] = kind_of(byte).empty() ? Utf8Rest{} : utf8_rest(byte);
    } else {
      const bool valid = before.low <= byte && byte <= before.high;
      const std::uint8_t first = trie[parents[i]].byte;
      if (!valid)
        own[i] = kNoKind | kind_of(byte);
      else if (first >= 0xC2)
        own[i] = kind_of(first, byte);
      rests[i] = valid ? Utf8Rest{0x80, 0xBF, static_cast<std::uint8_t>(before.left - 1)} : Utf8Rest{};
    }
  }
  for (std::size_t i = trie.size(); i-- > 1;) {
    const std::uint32_t parent = parents[i];
    below.kinds[parent] |= own[i] | below.kinds[i];
    const bool begins = rests[parent].left == 0;
    const int characters = std::min(255, below.characters[i] + begins);
    below.characters[parent] = std::max(below.characters[parent], static_cast<std::uint8_t>(characters));
  }
  for (std::size_t i = 0; i < trie.size(); ++i)
    if (rests[i].left > 0) below.kinds[i] |= kNoKind;
  return below;
}

}  // namespace octavo::grammar
