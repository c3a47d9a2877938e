// Proposes the tokens that followed the same n-gram earlier in the text (prompt lookup decoding: Saxena,
// 2023). It needs no model. It saves time for answers that quote, repeat or edit their prompt.
#pragma once

#include "engine/draft/options.h"
#include "engine/draft/proposer.h"

namespace octavo {

class NgramProposer final : public Proposer {
 public:
  // `options` must be valid.
  explicit NgramProposer(const NgramOptions& options) : options_(options) {}

  // Proposes the tokens after the longest match; of equally long matches, it takes the latest. If the match
  // is near the end of the text, the draft tokens repeat periodically. Time: O(length of the text).
  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  void end(std::uint64_t, std::span<const TokenId>, int) override {}

 private:
  void propose(Draft& draft) const;

  NgramOptions options_;
};

}  // namespace octavo
