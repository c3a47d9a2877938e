// Proposes the tokens that followed the last tokens earlier in the same text (prompt lookup decoding: Saxena,
// 2023). It costs no model, and pays for answers that quote, repeat or edit their prompt.
#pragma once

#include "engine/draft/options.h"
#include "engine/draft/proposer.h"

namespace octavo {

class NgramProposer final : public Proposer {
 public:
  // `options` is valid.
  explicit NgramProposer(const NgramOptions& options) : options_(options) {}

  // The tokens after the longest match, the latest of equals; beyond the end of the text the draft tokens
  // repeat. O(text).
  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  void end(std::uint64_t, std::span<const TokenId>, int) override {}

 private:
  void propose(Draft& draft) const;

  NgramOptions options_;
};

}  // namespace octavo
