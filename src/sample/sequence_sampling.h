// What the sampler must remember of one sequence (one answer of a request) from token to token.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "request/sampling_params.h"
#include "sample/token_history.h"

namespace octavo {

// The seed of answer `index` of a request: its own plus the index, or one drawn from `entropy`, which must
// differ between requests and be hard to guess.
std::uint64_t answer_seed(const SamplingParams& params, int index, std::uint64_t entropy);

class SequenceSampling {
 public:
  // `params`, validated, must outlive this. Prompt, eos and bad-word ids outside the vocabulary, which no
  // logit stands for, are ignored.
  SequenceSampling(const SamplingParams& params, std::span<const TokenId> prompt,
                   std::span<const TokenId> eos_ids, std::uint64_t seed, int vocab_size);

  // The sequence goes on with this token. O(1).
  void append(TokenId id);

  const SamplingParams& params() const { return params_; }
  std::uint64_t seed() const { return seed_; }
  int vocab_size() const { return vocab_size_; }
  // Empty if there are no penalties.
  const TokenHistory& history() const { return history_; }
  // Bit by token id, set = allowed; empty: all are.
  std::span<const std::uint32_t> allowed() const { return allowed_; }
  // logit_bias by id, each id once.
  std::span<const std::pair<TokenId, float>> bias() const { return bias_; }

  // The tokens that must not come after `output`: the last ones of bad words, before min_tokens those that
  // would end the text, and before all begin_suppress_tokens. Replaces `bans`; ascending, each once. At most bans_max().
  void find_bans(std::span<const TokenId> output, std::vector<TokenId>& bans) const;
  // Whether the request leaves no token to choose: none is in `mask` (bit by token id; empty: all are) and
  // allowed and not banned after `output`. `bans` is scratch.
  bool excludes_all(std::span<const std::int32_t> mask, std::span<const TokenId> output,
                    std::vector<TokenId>& bans) const;
  // Whether the request allows or prefers some tokens, apart from what the model and the filters say.
  bool restricts() const { return !allowed_.empty() || !bias_.empty() || bans_max() > 0; }
  // Whether what may come next depends on the tokens before it, beyond what the model says.
  bool follows_history() const { return penalises_ || bans_max() > 0; }
  std::size_t bans_max() const { return bad_words_.size() + ends_.size() + not_first_.size(); }

 private:
  bool in_vocabulary(TokenId id) const { return id >= 0 && id < vocab_size_; }

  const SamplingParams& params_;
  std::uint64_t seed_;
  int vocab_size_;
  bool penalises_;
  TokenHistory history_;
  std::vector<std::uint32_t> allowed_;
  std::vector<std::pair<TokenId, float>> bias_;
  std::vector<std::span<const TokenId>> bad_words_;  // into params_
  std::vector<TokenId> not_first_;                   // begin_suppress_tokens
  std::vector<TokenId> ends_;                        // eos and stop tokens, while min_tokens asks for a ban
};

}  // namespace octavo
