#include "engine/draft/suffix_text.h"

#include <algorithm>

namespace octavo {

std::size_t SuffixText::bucket(TokenId first, TokenId second) const {
  const std::uint64_t pair =
      std::uint64_t{static_cast<std::uint32_t>(first)} << 32 | static_cast<std::uint32_t>(second);
  const std::uint64_t mixed = (pair ^ (pair >> 29)) * 0x9e3779b97f4a7c15;
  return static_cast<std::size_t>(mixed >> 32) & (heads_.size() - 1);
}

// Adds the position to the list of the pair of tokens that ends there.
void SuffixText::link(std::uint32_t position) {
  std::uint32_t& head = heads_[bucket(text_[position - 1], text_[position])];
  before_[position] = head;
  head = position;
}

void SuffixText::append(TokenId token) {
  text_.push_back(token);
  before_.push_back(kNowhere);
  if (text_.size() > heads_.size()) {
    heads_.assign(std::max<std::size_t>(64, 2 * heads_.size()), kNowhere);
    for (std::uint32_t position = 1; position < size(); ++position) link(position);
  } else if (size() > 1) {
    link(size() - 1);
  }
}

}  // namespace octavo
