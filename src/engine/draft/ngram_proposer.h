// Proposes the tokens that followed the same n-gram earlier in the text (prompt lookup decoding: Saxena,
// 2023). The proposer needs no model, and pays for answers that quote, repeat or edit their prompt.
#pragma once

#include "engine/draft/options.h"
#include "engine/draft/proposer.h"

namespace octavo {

class NgramProposer final : public Proposer {
 public:
  // `options` must be valid.
  explicit NgramProposer(const NgramOptions& options) : options_(options) {}

  // Takes the tokens after the longest match, and after the latest of equal matches. Past the end of the text
  // the draft tokens repeat. O(text).
  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  void end(std::uint64_t, std::span<const TokenId>, int) override {}

 private:
  void propose(Draft& draft) const;

  NgramOptions options_;
};

}  // namespace octavo
