// The distinct tokens of a sequence and their counts in the output, from which the sampler computes
// penalties. Adding a token takes O(1).
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

  std::optional<std::size_t> find(TokenId id) const;

  // The distinct tokens in order of first appearance. counts()[i] is the number of output tokens equal to
  // ids()[i].
  std::span<const TokenId> ids() const { return ids_; }
  std::span<const std::int32_t> counts() const { return counts_; }

 private:
  std::size_t find_or_insert(TokenId id);
  std::size_t slot_of(TokenId id) const;

  std::vector<TokenId> ids_;
  std::vector<std::int32_t> counts_;
  std::vector<std::size_t> slots_;  // hash table with open addressing: index into ids_ plus 1; 0: empty
};

}  // namespace octavo
