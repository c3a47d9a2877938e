// A text that grows at its end, and where its pairs of tokens have occurred: chains of equal pairs, as LZ77
// coders keep them. Finds what a suffix tree of the text would, in 16 bytes a token and without any node.
#pragma once

#include <cstdint>
#include <vector>

#include "request/sampling_params.h"

namespace octavo {

class SuffixText {
 public:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  void append(TokenId token);
  std::uint32_t size() const { return static_cast<std::uint32_t>(text_.size()); }
  TokenId operator[](std::uint32_t place) const { return text_[place]; }

  // The last position where the pair may end, and the one before a position; kNowhere: none. The chain also
  // has other pairs.
  std::uint32_t last(TokenId first, TokenId second) const {
    return heads_.empty() ? kNowhere : heads_[bucket(first, second)];
  }
  std::uint32_t before(std::uint32_t place) const { return before_[place]; }

 private:
  std::size_t bucket(TokenId first, TokenId second) const;
  void link(std::uint32_t place);

  std::vector<TokenId> text_;
  std::vector<std::uint32_t> before_;  // by place
  std::vector<std::uint32_t> heads_;   // by bucket; a power of two of them
};

}  // namespace octavo
