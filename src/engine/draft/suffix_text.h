// A growing text with an index of its pairs of adjacent tokens. Linked lists contain the positions of equal
// pairs, as in LZ77 coders. The index finds the same matches as a suffix tree, but needs only 16 bytes per
// token.
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
  TokenId operator[](std::uint32_t position) const { return text_[position]; }

  // Positions at which the pair may end: last() returns the latest one, and before() returns the next
  // earlier one. kNowhere: there is no further position. A list is a hash bucket, so it may also contain
  // other pairs.
  std::uint32_t last(TokenId first, TokenId second) const {
    return heads_.empty() ? kNowhere : heads_[bucket(first, second)];
  }
  std::uint32_t before(std::uint32_t position) const { return before_[position]; }

 private:
  std::size_t bucket(TokenId first, TokenId second) const;
  void link(std::uint32_t position);

  std::vector<TokenId> text_;
  std::vector<std::uint32_t> before_;  // [position]: previous position in the same list
  // [bucket]: last position in the list. The number of buckets is a power of two.
  std::vector<std::uint32_t> heads_;
};

}  // namespace octavo
