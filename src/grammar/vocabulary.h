// The tokens of one model as a sorted byte trie, built once when the model is loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace octavo::grammar {

using TokenId = std::int32_t;

class StateMaskCache;

// A trie in preorder: the subtree of node i ends before nodes[i].end.
struct TrieNode {
  std::uint32_t end;
  std::uint32_t
      first_token;  // tokens that spell exactly this path: sorted_tokens[first_token, + token_count)
  std::uint32_t token_count;
  std::uint16_t depth;  // bytes from the root
  std::uint8_t byte;    // the last of them
};

class Vocabulary {
 public:
  // Tokenizes a text (UTF-8); empty if impossible.
  using Encode = std::function<std::vector<TokenId>(std::string_view)>;

  // tokens[id]: the bytes that the token adds to the text, "" if none. special: tokens that text never
  // produces; a grammar can name them only by name or id. eos: tokens that end a generation. cache_bytes_max
  // limits the masks that all grammars over this vocabulary share. Without `encode`, settled_tokens is
  // unknown.
  static Result<std::shared_ptr<const Vocabulary>> make(std::vector<std::string> tokens,
                                                        std::vector<TokenId> special,
                                                        std::vector<TokenId> eos,
                                                        std::size_t cache_bytes_max = 64u << 20,
                                                        Encode encode = {});
  ~Vocabulary();

  int size() const { return static_cast<int>(tokens_.size()); }
  std::size_t mask_words() const { return (tokens_.size() + 31) / 32; }
  std::string_view bytes(TokenId id) const { return tokens_[static_cast<std::size_t>(id)]; }
  bool contains(TokenId id) const { return id >= 0 && id < size(); }
  bool is_special(TokenId id) const { return special_[static_cast<std::size_t>(id)]; }
  bool is_eos(TokenId id) const;
  std::span<const TokenId> eos() const { return eos_; }
  std::size_t token_bytes_max() const { return token_bytes_max_; }
  std::span<const TokenId> special() const { return special_ids_; }  // eos among them
  // The special token with this text, or -1.
  TokenId special_named(std::string_view text) const;

  // The first tokens of this text that do not depend on later text: all except the last, which could become
  // part of a longer token. Empty if the tokens do not spell the text.
  std::vector<TokenId> settled_tokens(std::string_view text) const;
  // The same where it was asked for before.
  std::optional<std::vector<TokenId>> known_settled_tokens(std::string_view text) const;

  // Node 0 is the root (the empty path, no tokens).
  std::span<const TrieNode> trie() const { return trie_; }
  // The children of a node, by their bytes in rising order.
  std::span<const std::uint8_t> child_bytes(std::uint32_t node) const {
    return std::span(child_bytes_).subspan(children_[node], children_[node + 1] - children_[node]);
  }
  std::span<const std::uint32_t> child_nodes(std::uint32_t node) const {
    return std::span(child_nodes_).subspan(children_[node], children_[node + 1] - children_[node]);
  }
  std::span<const TokenId> sorted_tokens() const { return sorted_; }

  StateMaskCache& cache() const { return *cache_; }

 private:
  Vocabulary() = default;
  void build_trie();

  std::vector<std::string> tokens_;
  std::vector<bool> special_;
  std::vector<TokenId> special_ids_;
  std::vector<TokenId> eos_;
  std::vector<TokenId> sorted_;
  std::vector<TrieNode> trie_;
  std::vector<std::uint32_t> children_;  // node i has children_[i] up to children_[i + 1]
  std::vector<std::uint8_t> child_bytes_;
  std::vector<std::uint32_t> child_nodes_;
  std::size_t token_bytes_max_ = 0;
  std::unique_ptr<StateMaskCache> cache_;

  Encode encode_;
  mutable std::mutex settled_mutex_;
  mutable std::unordered_map<std::string, std::vector<TokenId>> settled_;  // earlier results
};

}  // namespace octavo::grammar
