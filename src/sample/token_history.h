// The distinct tokens of a sequence, with their counts in the output, for penalties. O(1) per token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "request/sampling_params.h"

namespace octavo {

class TokenHistory {
 public:
  void add_prompt(TokenId id) { counts_[find_or_insert(id)] += 0; }
  void add_output(TokenId id) { counts_[find_or_insert(id)] += 1; }

  // Returns the index of the token in ids(); nullopt if ids() does not contain it.
  std::optional<std::size_t> find(TokenId id) const;

  // Distinct tokens in order of first appearance; counts() has the number of each in the output.
  std::span<const TokenId> ids() const { return ids_; }
  std::span<const std::int32_t> counts() const { return counts_; }

 private:
  std::size_t find_or_insert(TokenId id);
  std::size_t slot_of(TokenId id) const;

  std::vector<TokenId> ids_;
  std::vector<std::int32_t> counts_;
  std::vector<std::size_t> slots_;  // open addressing, a power of two: index into ids_ plus 1; 0: empty
};

}  // namespace octavo
