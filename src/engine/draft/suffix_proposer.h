// A drafter without a model: it proposes the tokens that followed similar text, in the sequence itself or
// in past outputs (suffix decoding: Oliaro et al., NeurIPS 2025). Longer matches and more frequent
// continuations give more draft tokens. This saves time if outputs repeat themselves or each other, as with
// agents.
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
  explicit SuffixProposer(const SuffixOptions& options) : options_(options) {}

  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  // Keeps the output for other requests, unless the request has a cache salt. If max_cached_requests
  // outputs or kKeptTokensMax tokens are kept, removes the older half.
  void end(std::uint64_t sequence, std::span<const TokenId> text, int prompt_tokens) override;

  static constexpr std::uint32_t kKeptTokensMax = 1 << 20;

 private:
  struct Own {
    SuffixText text;
    bool isolated = false;
  };
  // A position in a text whose preceding tokens match the end of the sequence. `alike` is the number of
  // matching tokens.
  struct Match {
    std::uint32_t position = 0;
    int alike = 0;
  };

  void propose(const SuffixText& known, Draft& draft);
  void find_matches(const SuffixText& known, std::span<const TokenId> text);
  double follow(const SuffixText& known, std::size_t matches, int most);

  SuffixOptions options_;
  std::unordered_map<std::uint64_t, Own> own_;  // by Draft::sequence
  SuffixText young_, old_;                      // kept outputs, each followed by kEnd
  int young_answers_ = 0;

  std::vector<Match> matches_;  // scratch memory, longest matches first
  // Scratch memory: positions that match all draft tokens so far.
  std::vector<std::uint32_t> alive_;
  std::vector<TokenId> draft_tokens_;           // scratch memory
  std::vector<std::pair<TokenId, int>> votes_;  // scratch memory
  double best_ = 0;                             // expected number of accepted tokens of the draft
};

}  // namespace octavo
