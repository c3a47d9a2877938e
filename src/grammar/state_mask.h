// Mask of one automaton state that is valid for any stack. It divides the tokens into accepted, rejected and
// open tokens. A token is open if the rule may end inside it, so that the stack decides whether it is allowed
// (as in XGrammar, Dong et al. 2024).
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

// A set of tokens, stored as a list if it is small and as a bit mask otherwise.
class TokenSet {
 public:
  TokenSet() = default;
  TokenSet(std::span<const TokenId> tokens, std::size_t mask_words);

  TokenSet without(std::span<const TokenId> removed, std::size_t mask_words) const;

  bool empty() const { return list_.empty() && bits_.empty(); }
  void add_to(std::span<std::int32_t> mask) const;
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
  bool may_end = false;  // whether the rule can end at this state, before any token
  // number of trie nodes that computing the mask visited
  std::size_t visited = 0;

  // Open nodes: trie nodes before which the rule can end, grouped by byte. The text after the rule decides
  // whether their tokens are allowed.
  struct Group {
    std::uint8_t byte;
    std::uint32_t begin, end;  // range in `open`
  };
  std::vector<Group> groups;
  std::vector<std::uint32_t> open;

  // For masks of repetitions: `open` is empty, and DenseRule::open_after_repeats() finds the open nodes.
  bool open_by_path = false;
  // For masks of unbounded repetitions: accepted tokens, sorted by the number of repetitions that begin in
  // the token. The tokens with at least r repetitions start at by_repeats[repeats_begin[r]].
  std::vector<TokenId> by_repeats;
  std::vector<std::uint32_t> repeats_begin;

  // A mask may be a difference from `base`:
  // - For bounded repetitions, `base` is the mask of the unbounded repetition. An open node of `base` applies
  //   if its number of repetitions is within repeats_min and repeats_max.
  // - If `subtracts`, the accepted tokens are those of `base` without `removed`, plus `accepted`.
  // - `closed` lists open nodes of `base` that are not open here.
  std::shared_ptr<const StateMask> base;
  std::uint32_t repeats_min = 0, repeats_max = UINT32_MAX;
  bool subtracts = false;
  // whether this mask's byte_size() includes the base
  bool counts_base = false;
  std::vector<TokenId> removed;
  std::vector<std::uint32_t> closed;

  // Makes the children of these trie nodes the open nodes.
  void set_open(std::span<const TrieNode> trie, std::span<const std::uint32_t> parents);
  // Calls visit(node) for each stored open node whose byte is wanted.
  template <class Wanted, class Visit>
  void for_open(Wanted&& wanted, Visit&& visit) const {
    for (const Group& group : groups) {
      if (!wanted(group.byte)) continue;
      for (std::uint32_t i = group.begin; i < group.end; ++i) visit(open[i]);
    }
    if (!base) return;
    for (const Group& group : base->groups) {
      if (!wanted(group.byte)) continue;
      for (std::uint32_t i = group.begin; i < group.end; ++i)
        if (!std::ranges::binary_search(closed, base->open[i])) visit(base->open[i]);
    }
  }
  bool has_open() const { return open_by_path || !open.empty() || (base && !base->open.empty()); }
  bool accepts_any() const { return subtracts || !accepted.empty(); }
  void add_to(std::span<std::int32_t> mask) const;
  void copy_to(std::span<std::int32_t> mask) const;
  // Returns the size in bytes. Includes the base only if counts_base is set.
  std::size_t byte_size() const;
};

// Cache of masks that all grammars of a vocabulary share. The key is a hash of the structure of the state's
// rule. For example, the masks of strings are equal in all schemas. Evicts the least recently used masks.
// Thread-safe.
class StateMaskCache {
 public:
  explicit StateMaskCache(std::size_t bytes_max);

  // Returns the secret seed of the hashes. A client that does not know the seed cannot construct two grammars
  // whose hashes collide.
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
