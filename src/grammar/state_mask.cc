#include "grammar/state_mask.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/clones.h"

namespace octavo::grammar {

namespace {

// Copies blocks of 64 bytes. On Zen 4, one memcpy of all words takes two to three times as long if source and
// target have similar offsets in their pages, which is common for large allocations.
constexpr std::size_t kBlockWords = 16;

OCTAVO_CLONES void copy_words(const std::int32_t* from, std::size_t count, std::int32_t* to) {
  std::size_t i = 0;
  for (; i < count && reinterpret_cast<std::uintptr_t>(to + i) % 64 != 0; ++i) to[i] = from[i];
  for (; i + kBlockWords <= count; i += kBlockWords)
    std::memcpy(to + i, from + i, kBlockWords * sizeof(std::int32_t));
  for (; i < count; ++i) to[i] = from[i];
}

void clear(std::span<std::int32_t> mask, std::span<const TokenId> tokens) {
  for (const TokenId id : tokens)
    mask[static_cast<std::size_t>(id) / 32] &= ~static_cast<std::int32_t>(1u << (id % 32));
}

}  // namespace

void set_bits(std::span<std::int32_t> mask, std::span<const TokenId> tokens) {
  for (const TokenId id : tokens)
    mask[static_cast<std::size_t>(id) / 32] |= static_cast<std::int32_t>(1u << (id % 32));
}

TokenSet::TokenSet(std::span<const TokenId> tokens, std::size_t mask_words) {
  if (tokens.size() <= mask_words / 8) {
    list_.assign(tokens.begin(), tokens.end());
    return;
  }
  bits_.resize(mask_words);
  set_bits(bits_, tokens);
}

TokenSet TokenSet::without(std::span<const TokenId> removed, std::size_t mask_words) const {
  TokenSet out;
  out.bits_.resize(mask_words);
  copy_to(out.bits_);
  clear(out.bits_, removed);
  return out;
}

void TokenSet::copy_to(std::span<std::int32_t> mask) const {
  if (!bits_.empty()) {
    copy_words(bits_.data(), bits_.size(), mask.data());
  } else {
    std::ranges::fill(mask, 0);
    add_to(mask);
  }
}

void TokenSet::add_to(std::span<std::int32_t> mask) const {
  for (std::size_t i = 0; i < bits_.size(); ++i) mask[i] |= bits_[i];
  set_bits(mask, list_);
}

void StateMask::set_open(std::span<const TrieNode> trie, std::span<const std::uint32_t> parents) {
  if (parents.empty()) return;
  const auto for_each = [&](auto&& visit) {
    for (const std::uint32_t parent : parents)
      for (std::uint32_t child = parent + 1; child < trie[parent].end; child = trie[child].end) visit(child);
  };
  std::array<std::uint32_t, 257> begin{};
  for_each([&](std::uint32_t child) { ++begin[trie[child].byte + 1u]; });
  for (std::size_t b = 0; b < 256; ++b) {
    begin[b + 1] += begin[b];
    if (begin[b + 1] > begin[b]) groups.push_back({static_cast<std::uint8_t>(b), begin[b], begin[b + 1]});
  }
  open.resize(begin[256]);
  for_each([&](std::uint32_t child) { open[begin[trie[child].byte]++] = child; });
}

void StateMask::add_to(std::span<std::int32_t> mask) const {
  accepted.add_to(mask);
  if (!subtracts) return;
  const auto word = [&](TokenId id) -> std::int32_t& { return mask[static_cast<std::size_t>(id) / 32]; };
  const auto bit = [](TokenId id) { return static_cast<std::int32_t>(1u << (id % 32)); };
  // `removed` tokens whose bits are not set in `mask` now. Adding the base sets these bits, so they are
  // cleared afterwards.
  thread_local std::vector<TokenId> absent;
  absent.clear();
  for (const TokenId id : removed)
    if ((word(id) & bit(id)) == 0) absent.push_back(id);
  base->add_to(mask);
  for (const TokenId id : absent) word(id) &= ~bit(id);
}

void StateMask::copy_to(std::span<std::int32_t> mask) const {
  if (!subtracts) return accepted.copy_to(mask);
  base->accepted.copy_to(mask);
  clear(mask, removed);
  accepted.add_to(mask);
}

std::size_t StateMask::byte_size() const {
  return sizeof *this + accepted.byte_size() + groups.size() * sizeof(Group) +
         (open.size() + removed.size() + closed.size() + by_repeats.size() + repeats_begin.size()) *
             sizeof(std::uint32_t) +
         (counts_base ? base->byte_size() : 0);
}

StateMaskCache::StateMaskCache(std::size_t bytes_max) : bytes_max_(bytes_max), seed_(secret_seed()) {}

std::shared_ptr<const StateMask> StateMaskCache::find(const Hash128& key) {
  const std::scoped_lock lock(mutex_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->mask;
}

void StateMaskCache::insert(const Hash128& key, std::shared_ptr<const StateMask> mask) {
  const std::scoped_lock lock(mutex_);
  if (by_key_.contains(key) || mask->byte_size() > bytes_max_) return;
  bytes_ += mask->byte_size();
  entries_.push_front({key, std::move(mask)});
  by_key_[key] = entries_.begin();
  while (bytes_ > bytes_max_) {
    bytes_ -= entries_.back().mask->byte_size();
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

std::size_t StateMaskCache::byte_size() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

}  // namespace octavo::grammar
