// The effect of every vocabulary token from one automaton state, for any stack below it: accepted as a whole,
// rejected, or open because the rule may end inside the token (the split of XGrammar, Dong et al. 2024).
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "grammar/vocabulary.h"

namespace octavo::grammar {

void set_bits(std::span<std::int32_t> mask, std::span<const TokenId> tokens);

// A set of tokens: a list while it is small, a bit mask beyond.
class TokenSet {
 public:
  TokenSet() = default;
  TokenSet(std::span<const TokenId> tokens, std::size_t mask_words);

  // A set that holds these tokens, without some of them.
  TokenSet without(std::span<const TokenId> removed, std::size_t mask_words) const;

  bool empty() const { return list_.empty() && bits_.empty(); }
  void add_to(std::span<std::int32_t> mask) const;
  // Sets a mask to exactly these tokens.
  void copy_to(std::span<std::int32_t> mask) const;
  std::size_t byte_size() const {
    return list_.size() * sizeof(TokenId) + bits_.size() * sizeof(std::int32_t);
  }

 private:
  std::vector<TokenId> list_;
  std::vector<std::int32_t> bits_;
};

struct StateMask {
  TokenSet accepted;
  bool may_end = false;     // the rule may end before the token begins
  std::size_t visited = 0;  // trie nodes looked at: what it cost

  // Trie nodes before which the rule may end, grouped by their byte: what may follow the rule decides about
  // them.
  struct Group {
    std::uint8_t byte;
    std::uint32_t begin, end;  // in `open`
  };
  std::vector<Group> groups;
  std::vector<std::uint32_t> open;

  // For unbounded repetitions: how many are complete before each open node, and the accepted tokens by how
  // many they begin; those that begin at least r start at by_repeats[repeats_begin[r]].
  std::vector<std::uint32_t> open_repeats;
  std::vector<TokenId> by_repeats;
  std::vector<std::uint32_t> repeats_begin;

  // A mask that is stored as its difference from another one. For bounded repetitions that is the mask of
  // unbounded ones, whose open nodes count where the repetitions are within bounds. `subtracts`: the accepted
  // tokens are those of `base`, too, without `removed`. `closed`: open nodes of `base` that are none here.
  std::shared_ptr<const StateMask> base;
  std::uint32_t repeats_min = 0, repeats_max = UINT32_MAX;
  bool subtracts = false;
  bool counts_base = false;  // only this mask keeps the base, so its bytes are counted here
  std::vector<TokenId> removed;
  std::vector<std::uint32_t> closed;  // rising

  // Sets groups, open and open_repeats to the children of these nodes.
  void set_open(std::span<const TrieNode> trie, std::span<const std::uint32_t> parents,
                std::span<const std::uint32_t> repeats);
  // Calls visit(node) for the open nodes of each byte for which wanted(byte).
  template <class Wanted, class Visit>
  void for_open(Wanted&& wanted, Visit&& visit) const {
    for (const Group& group : groups) {
      if (!wanted(group.byte)) continue;
      for (std::uint32_t i = group.begin; i < group.end; ++i) visit(open[i]);
    }
    if (!base) return;
    const auto counts = [&](std::uint32_t i) {
      if (!base->open_repeats.empty())
        return repeats_min <= base->open_repeats[i] && base->open_repeats[i] <= repeats_max;
      return !std::ranges::binary_search(closed, base->open[i]);
    };
    for (const Group& group : base->groups) {
      if (!wanted(group.byte)) continue;
      for (std::uint32_t i = group.begin; i < group.end; ++i)
        if (counts(i)) visit(base->open[i]);
    }
  }
  bool has_open() const { return !open.empty() || (base && !base->open.empty()); }
  bool accepts_any() const { return subtracts || !accepted.empty(); }
  void add_to(std::span<std::int32_t> mask) const;
  // Sets a mask to exactly the accepted tokens.
  void copy_to(std::span<std::int32_t> mask) const;
  // Without `base` where that is counted where it is kept.
  std::size_t byte_size() const;
};

// Masks of states by the structure of their rule, shared by all grammars of a vocabulary: every schema has
// strings, and the masks of a string are the same in each. Least recently used entries leave first.
// Thread-safe.
class StateMaskCache {
 public:
  explicit StateMaskCache(std::size_t bytes_max);

  // Keys are hashes under a secret seed, so that no grammar can be made to collide with another.
  std::uint64_t seed() const { return seed_; }
  std::shared_ptr<const StateMask> find(const Hash128& key);
  void insert(const Hash128& key, std::shared_ptr<const StateMask> mask);
  std::size_t byte_size() const;

 private:
  struct Entry {
    Hash128 key;
    std::shared_ptr<const StateMask> mask;
  };

  const std::size_t bytes_max_;
  const std::uint64_t seed_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Hash128, std::list<Entry>::iterator, HashOfHash> by_key_;
  std::size_t bytes_ = 0;
};

}  // namespace octavo::grammar
