// The tokens of a model as a sorted byte trie. It is built once, when the model is loaded.
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
#include "grammar/character_kinds.h"

namespace octavo::grammar {

using TokenId = std::int32_t;

class StateMaskCache;

// Trie node. The nodes are in preorder; the subtree of a node ends before the node `end`.
struct TrieNode {
  std::uint32_t end;
  // sorted_tokens[first_token, first_token + token_count) are the tokens with exactly the bytes of this
  // path.
  std::uint32_t first_token;
  std::uint32_t token_count;
  std::uint16_t depth;  // bytes from the root
  std::uint8_t byte;    // last byte of the path
};

class Vocabulary {
 public:
  // Tokenizes UTF-8 text. Returns an empty list if this is impossible.
  using Encode = std::function<std::vector<TokenId>(std::string_view)>;

  // - tokens[id]: bytes that the token adds to the text; "": it adds no text.
  // - special: tokens that text never produces. Grammars can only name them by text or id.
  // - eos: end-of-text tokens.
  // - cache_bytes_max: size limit of the mask cache that all grammars share.
  // - encode: if empty, settled_tokens() returns no tokens.
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
  std::span<const TokenId> special() const { return special_ids_; }  // includes the end-of-text tokens
  // Returns the id of the special token with this text, or -1 if there is none.
  TokenId special_named(std::string_view text) const;

  // Tokenizes the text and removes the last token, because later text could change it. Returns an empty list
  // if the bytes of the tokens are not exactly the text.
  std::vector<TokenId> settled_tokens(std::string_view text) const;
  // Returns the result of settled_tokens() if it is cached, otherwise nullopt.
  std::optional<std::vector<TokenId>> known_settled_tokens(std::string_view text) const;

  // Node 0 is the root (the empty path).
  std::span<const TrieNode> trie() const { return trie_; }
  // Children of a node, in ascending order of their bytes.
  std::span<const std::uint8_t> child_bytes(std::uint32_t node) const {
    return std::span(child_bytes_).subspan(children_[node], children_[node + 1] - children_[node]);
  }
  std::span<const std::uint32_t> child_nodes(std::uint32_t node) const {
    return std::span(child_nodes_).subspan(children_[node], children_[node + 1] - children_[node]);
  }
  std::span<const TokenId> sorted_tokens() const { return sorted_; }
  std::span<const TokenId> tokens_below(std::uint32_t node) const {
    const std::uint32_t first = trie_[node].first_token + trie_[node].token_count, end = trie_[node].end;
    return sorted_tokens().subspan(first,
                                   (end < trie_.size() ? trie_[end].first_token : sorted_.size()) - first);
  }
  const TextBelow& text_below() const { return text_below_; }
  // Returns the number of characters of each token in sorted_tokens(). The last character may be
  // incomplete.
  std::span<const std::uint16_t> characters() const { return characters_; }

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
  // children of node i: elements children_[i] to children_[i + 1] - 1
  std::vector<std::uint32_t> children_;
  std::vector<std::uint8_t> child_bytes_;
  std::vector<std::uint32_t> child_nodes_;
  TextBelow text_below_;
  std::vector<std::uint16_t> characters_;
  std::size_t token_bytes_max_ = 0;
  std::unique_ptr<StateMaskCache> cache_;

  Encode encode_;
  mutable std::mutex settled_mutex_;
  // cached results of settled_tokens()
  mutable std::unordered_map<std::string, std::vector<TokenId>> settled_;
};

}  // namespace octavo::grammar
