// Proposes the tokens that followed a similar text, in the sequence itself or in past answers (suffix
// decoding: Oliaro et al., NeurIPS 2025). It proposes more tokens after longer matches, and for continuations
// that occurred more often. It needs no model. It saves time if answers repeat themselves or each other, as
// those of agents do.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/draft/options.h"
#include "engine/draft/proposer.h"
#include "engine/draft/suffix_text.h"

namespace octavo {

class SuffixProposer final : public Proposer {
 public:
  // `options` must be valid.
  explicit SuffixProposer(const SuffixOptions& options) : options_(options) {}

  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  // Keeps the answer for other requests, unless its request has a cache salt. When max_cached_requests
  // answers or kKeptTokensMax tokens are kept, the older half is removed.
  void end(std::uint64_t sequence, std::span<const TokenId> text, int prompt_tokens) override;

  static constexpr std::uint32_t kKeptTokensMax = 1 << 20;

 private:
  struct Own {
    SuffixText text;
    bool isolated = false;
  };
  // A position in a text that matches the end of the sequence, and the number of matching tokens before
  // it.
  struct Match {
    std::uint32_t place = 0;
    int alike = 0;
  };

  void propose(const SuffixText& known, Draft& draft);
  void find_matches(const SuffixText& known, std::span<const TokenId> text);
  double follow(const SuffixText& known, std::size_t matches, int most);

  SuffixOptions options_;
  std::unordered_map<std::uint64_t, Own> own_;  // by id of the sequence
  SuffixText young_, old_;                      // kept answers, each followed by kEnd
  int young_answers_ = 0;

  std::vector<Match> matches_;                  // scratch memory, longest matches first
  std::vector<std::uint32_t> alive_;            // scratch memory: positions that match all draft tokens so
                                                // far
  std::vector<TokenId> draft_tokens_;           // scratch memory
  std::vector<std::pair<TokenId, int>> votes_;  // scratch memory
  double best_ = 0;                             // expected number of accepted tokens of the draft
};

}  // namespace octavo
