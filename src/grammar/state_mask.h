// The effect of every token of the vocabulary from one automaton state, for any stack: accepted, rejected,
// or open. Open means that the rule can end inside the token, so the stack decides (as in XGrammar, Dong et
// al. 2024).
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

// A set of tokens: a list if it is small, otherwise a bit mask.
class TokenSet {
 public:
  TokenSet() = default;
  TokenSet(std::span<const TokenId> tokens, std::size_t mask_words);

  TokenSet without(std::span<const TokenId> removed, std::size_t mask_words) const;

  bool empty() const { return list_.empty() && bits_.empty(); }
  void add_to(std::span<std::int32_t> mask) const;
  // Sets the mask to exactly these tokens.
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
  bool may_end = false;     // the rule can end before the token
  std::size_t visited = 0;  // trie nodes examined for this mask

  // Trie nodes before which the rule can end, grouped by their byte. The text after the rule decides
  // whether these nodes are allowed.
  struct Group {
    std::uint8_t byte;
    std::uint32_t begin, end;  // range in `open`
  };
  std::vector<Group> groups;
  std::vector<std::uint32_t> open;

  // For unbounded repetitions. open_repeats: number of complete repetitions before each open node.
  // by_repeats: accepted tokens, sorted by the number of repetitions that they begin. Tokens that begin at
  // least r repetitions start at by_repeats[repeats_begin[r]].
  std::vector<std::uint32_t> open_repeats;
  std::vector<TokenId> by_repeats;
  std::vector<std::uint32_t> repeats_begin;

  // A mask can be stored as its difference from `base`.
  // - Bounded repetitions: `base` is the mask of unbounded ones. An open node counts if its repetitions are
  //   within the bounds.
  // - subtracts: the accepted tokens include those of `base`, except `removed`.
  // - closed: open nodes of `base` that are not open here.
  std::shared_ptr<const StateMask> base;
  std::uint32_t repeats_min = 0, repeats_max = UINT32_MAX;
  bool subtracts = false;
  bool counts_base = false;  // only this mask refers to the base, so its size includes the base's
  std::vector<TokenId> removed;
  std::vector<std::uint32_t> closed;  // ascending

  // Sets groups, open and open_repeats for the children of these nodes.
  void set_open(std::span<const TrieNode> trie, std::span<const std::uint32_t> parents,
                std::span<const std::uint32_t> repeats);
  // Calls visit(node) for the open nodes of each byte for which wanted(byte) is true.
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
  // Sets the mask to exactly the accepted tokens.
  void copy_to(std::span<std::int32_t> mask) const;
  // Returns the size without a base that is counted elsewhere.
  std::size_t byte_size() const;
};

// A cache of masks, keyed by the structure of the state's rule and shared by all grammars of a vocabulary.
// All schemas contain strings, whose masks are equal. The least recently used entries are dropped first.
// Thread-safe.
class StateMaskCache {
 public:
  explicit StateMaskCache(std::size_t bytes_max);

  // Returns the secret seed of the hashes that are keys: without it, no client can construct two grammars
  // that collide.
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
