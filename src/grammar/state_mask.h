// What every token of the vocabulary does from one automaton state, whatever lies below it on the stack: accepted as a
// whole, rejected, or open because the rule may end inside the token (the split of XGrammar, Dong et al. 2024).
#pragma once

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

// A set of tokens: a list while it is small, a bit mask beyond.
class TokenSet {
 public:
  TokenSet() = default;
  TokenSet(std::vector<TokenId> tokens, std::size_t mask_words);

  bool empty() const { return list_.empty() && bits_.empty(); }
  void add_to(std::span<std::int32_t> mask) const;
  std::size_t byte_size() const { return list_.size() * sizeof(TokenId) + bits_.size() * sizeof(std::int32_t); }

 private:
  std::vector<TokenId> list_;
  std::vector<std::int32_t> bits_;
};

struct StateMask {
  TokenSet accepted;
  std::vector<std::uint32_t> open;  // trie nodes at which the rule may end and below which there are tokens
  bool may_end = false;             // the rule may end before the token begins
  std::size_t visited = 0;          // trie nodes looked at: what it cost

  std::size_t byte_size() const { return sizeof *this + accepted.byte_size() + open.size() * sizeof(std::uint32_t); }
};

// Masks of states by the structure of their rule, shared by all grammars of a vocabulary: every schema has strings, and
// the masks of a string are the same in each. Least recently used entries leave first. Thread-safe.
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
