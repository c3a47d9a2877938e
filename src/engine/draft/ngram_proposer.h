// Proposes that the text goes on as it did before: the last tokens are looked up in the text itself (prompt
// lookup decoding: Saxena, 2023). Costs no model, and pays where answers quote, repeat or edit their prompt.
#pragma once

#include "engine/draft/options.h"
#include "engine/draft/proposer.h"

namespace octavo {

class NgramProposer final : public Proposer {
 public:
  // `options` is valid.
  explicit NgramProposer(const NgramOptions& options) : options_(options) {}

  // What followed the longest match, the latest of equals; beyond the end of the text the draft tokens
  // repeat. O(text).
  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  void end(std::uint64_t, std::span<const TokenId>, int) override {}

 private:
  void propose(Draft& draft) const;

  NgramOptions options_;
};

}  // namespace octavo
