#include "grammar/state_mask.h"

#include <algorithm>
#include <utility>

namespace octavo::grammar {

TokenSet::TokenSet(std::vector<TokenId> tokens, std::size_t mask_words) {
  if (tokens.size() <= mask_words / 2) {
    list_ = std::move(tokens);
    list_.shrink_to_fit();
    return;
  }
  bits_.resize(mask_words);
  for (const TokenId id : tokens) bits_[static_cast<std::size_t>(id) / 32] |= static_cast<std::int32_t>(1u << (id % 32));
}

void TokenSet::add_to(std::span<std::int32_t> mask) const {
  for (std::size_t i = 0; i < bits_.size(); ++i) mask[i] |= bits_[i];
  for (const TokenId id : list_) mask[static_cast<std::size_t>(id) / 32] |= static_cast<std::int32_t>(1u << (id % 32));
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
