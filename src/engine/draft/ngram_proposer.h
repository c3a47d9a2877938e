// A drafter without a model: it proposes the tokens that followed the same n-gram earlier in the text
// (prompt lookup decoding: Saxena, 2023). It saves time for outputs that quote, repeat or edit their
// prompt.
#pragma once

#include "engine/draft/options.h"
#include "engine/draft/proposer.h"

namespace octavo {

class NgramProposer final : public Proposer {
 public:
  explicit NgramProposer(const NgramOptions& options) : options_(options) {}

  // Proposes the tokens after the longest match. If several matches are equally long, uses the latest one.
  // If fewer tokens than needed follow the match, the draft repeats them periodically. Takes time linear in
  // the length of the text.
  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  void end(std::uint64_t, std::span<const TokenId>, int) override {}

 private:
  void propose(Draft& draft) const;

  NgramOptions options_;
};

}  // namespace octavo
