#include "grammar/vocabulary.h"

#include <algorithm>
#include <utility>

#include "grammar/limits.h"
#include "grammar/state_mask.h"

namespace octavo::grammar {

Vocabulary::~Vocabulary() = default;

Result<std::shared_ptr<const Vocabulary>> Vocabulary::make(std::vector<std::string> tokens,
                                                           std::vector<TokenId> special,
                                                           std::vector<TokenId> eos,
                                                           std::size_t cache_bytes_max, Encode encode) {
  std::shared_ptr<Vocabulary> v(new Vocabulary);
  v->tokens_ = std::move(tokens);
  v->special_.resize(v->tokens_.size());
  for (const std::string& token : v->tokens_)
    v->token_bytes_max_ = std::max(v->token_bytes_max_, token.size());
  if (v->token_bytes_max_ > kTokenBytesMax)
    return invalid("tokens", "a token has {} bytes, the limit is {}", v->token_bytes_max_, kTokenBytesMax);
  for (const TokenId id : special)
    if (!v->contains(id))
      return invalid("special", "token number {} is not in the vocabulary, which has {} tokens", id,
                     v->size());
  for (const TokenId id : eos)
    if (!v->contains(id))
      return invalid("eos", "token number {} is not in the vocabulary, which has {} tokens", id, v->size());
  for (const TokenId id : special) v->special_[static_cast<std::size_t>(id)] = true;
  for (const TokenId id : eos) v->special_[static_cast<std::size_t>(id)] = true;
  v->special_ids_ = std::move(special);
  v->special_ids_.insert(v->special_ids_.end(), eos.begin(), eos.end());
  v->eos_ = std::move(eos);
  std::ranges::sort(v->eos_);
  v->encode_ = std::move(encode);
  v->build_trie();
  v->cache_ = std::make_unique<StateMaskCache>(cache_bytes_max);
  return v;
}

bool Vocabulary::is_eos(TokenId id) const { return std::ranges::binary_search(eos_, id); }

TokenId Vocabulary::special_named(std::string_view text) const {
  for (const TokenId id : special_ids_)
    if (bytes(id) == text) return id;
  return -1;
}

std::vector<TokenId> Vocabulary::settled_tokens(std::string_view text) const {
  constexpr std::size_t kRememberedMax = 4096;
  if (auto known = known_settled_tokens(text)) return *std::move(known);
  std::vector<TokenId> ids = encode_(text);
  std::size_t spelled = 0;
  const bool spells = std::ranges::all_of(ids, [&](TokenId id) {
    if (!contains(id) || is_special(id) || !text.substr(spelled).starts_with(bytes(id))) return false;
    spelled += bytes(id).size();
    return true;
  });
  if (spells && spelled == text.size() && !ids.empty())
    ids.pop_back();
  else
    ids.clear();
  const std::lock_guard lock(settled_mutex_);
  if (settled_.size() >= kRememberedMax) settled_.clear();
  settled_.try_emplace(std::string(text), ids);
  return ids;
}

std::optional<std::vector<TokenId>> Vocabulary::known_settled_tokens(std::string_view text) const {
  if (!encode_) return std::vector<TokenId>{};
  const std::lock_guard lock(settled_mutex_);
  const auto known = settled_.find(std::string(text));
  if (known == settled_.end()) return std::nullopt;
  return known->second;
}

void Vocabulary::build_trie() {
  for (TokenId id = 0; id < size(); ++id)
    if (!is_special(id) && !bytes(id).empty()) sorted_.push_back(id);
  std::ranges::sort(sorted_,
                    [&](TokenId a, TokenId b) { return std::pair(bytes(a), a) < std::pair(bytes(b), b); });

  trie_.push_back({0, 0, 0, 0, 0});
  std::vector<std::uint32_t> path{0};  // nodes from the root to the token that was added last
  std::string_view last;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth + 1; path.pop_back())
      trie_[path.back()].end = static_cast<std::uint32_t>(trie_.size());
  };
  for (std::uint32_t i = 0; i < sorted_.size(); ++i) {
    const std::string_view text = bytes(sorted_[i]);
    std::size_t common = 0;
    while (common < last.size() && common < text.size() && last[common] == text[common]) ++common;
    close(common);
    for (std::size_t d = common; d < text.size(); ++d) {
      path.push_back(static_cast<std::uint32_t>(trie_.size()));
      trie_.push_back({0, i, 0, static_cast<std::uint16_t>(d + 1), static_cast<std::uint8_t>(text[d])});
    }
    TrieNode& node = trie_[path.back()];
    if (node.token_count++ == 0) node.first_token = i;
    last = text;
  }
  close(0);
  trie_[0].end = static_cast<std::uint32_t>(trie_.size());
  for (std::uint32_t i = 0; i < trie_.size(); ++i) {
    children_.push_back(static_cast<std::uint32_t>(child_nodes_.size()));
    for (std::uint32_t child = i + 1; child < trie_[i].end; child = trie_[child].end) {
      child_bytes_.push_back(trie_[child].byte);
      child_nodes_.push_back(child);
    }
  }
  children_.push_back(static_cast<std::uint32_t>(child_nodes_.size()));
  text_below_ = grammar::text_below(trie_);
  for (const TokenId id : sorted_)
    characters_.push_back(static_cast<std::uint16_t>(std::ranges::count_if(bytes(id), begins_character)));
}

}  // namespace octavo::grammar
