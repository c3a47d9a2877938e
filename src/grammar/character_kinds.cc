#include "grammar/character_kinds.h"

#include <array>
#include <cstddef>

namespace octavo::grammar {

namespace {

constexpr std::array<KindSet, 256> make_kinds() {
  std::array<KindSet, 256> kinds{};
  int next = 0;
  const auto kind = [&](unsigned low, unsigned high) {
    for (unsigned byte = low; byte <= high; ++byte) kinds[byte] = KindSet{1} << next;
    ++next;
  };
  kind(0, 0x1F);
  kind('\t', '\n');
  kind(0x7F, 0x7F);
  for (unsigned byte = ' '; byte < '0'; ++byte) kind(byte, byte);
  kind('0', '9');
  for (unsigned byte = ':'; byte <= '@'; ++byte) kind(byte, byte);
  kind('A', 'Z');
  for (unsigned byte = '['; byte <= '`'; ++byte) kind(byte, byte);
  kind('a', 'z');
  for (unsigned byte = '{'; byte <= '~'; ++byte) kind(byte, byte);
  kind(0xC2, 0xC3);
  for (unsigned byte = 0xC4; byte <= 0xDC; byte += 4) kind(byte, byte + 3);
  for (unsigned byte = 0xE0; byte <= 0xE3; ++byte) kind(byte, byte);
  kind(0xE4, 0xE9);
  kind(0xEA, 0xED);
  kind(0xEE, 0xEF);
  kind(0xF0, 0xF4);
  return kinds;
}
constexpr std::array<KindSet, 256> kKinds = make_kinds();
static_assert(kKinds[0xF4] < kNoKind);

}  // namespace

KindSet kind_of(std::uint8_t first_byte) { return kKinds[first_byte]; }

Utf8Rest utf8_rest(std::uint8_t first_byte) {
  const std::uint8_t left = first_byte < 0xC2 ? 0 : first_byte < 0xE0 ? 1 : first_byte < 0xF0 ? 2 : 3;
  const std::uint8_t low = first_byte == 0xE0 ? 0xA0 : first_byte == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t high = first_byte == 0xED ? 0x9F : first_byte == 0xF4 ? 0x8F : 0xBF;
  return {low, high, left};
}

std::vector<KindSet> kinds_below(std::span<const TrieNode> trie) {
  std::vector<KindSet> below(trie.size()), own(trie.size());
  std::vector<Utf8Rest> rests(trie.size());
  std::vector<std::uint32_t> parents(trie.size()), path{0};
  for (std::uint32_t i = 1; i < trie.size(); ++i) {
    const std::uint8_t byte = trie[i].byte;
    path.resize(trie[i].depth);
    parents[i] = path.back();
    path.push_back(i);
    const Utf8Rest before = rests[parents[i]];
    if (before.left == 0) {
      own[i] = kind_of(byte) != 0 ? kind_of(byte) : kNoKind;
      rests[i] = kind_of(byte) != 0 ? utf8_rest(byte) : Utf8Rest{};
    } else {
      const bool valid = before.low <= byte && byte <= before.high;
      own[i] = valid ? 0 : kNoKind;
      rests[i] = valid ? Utf8Rest{0x80, 0xBF, static_cast<std::uint8_t>(before.left - 1)} : Utf8Rest{};
    }
  }
  for (std::size_t i = trie.size(); i-- > 1;) below[parents[i]] |= own[i] | below[i];
  for (std::size_t i = 0; i < trie.size(); ++i)
    if (rests[i].left > 0) below[i] |= kNoKind;
  return below;
}

}  // namespace octavo::grammar
