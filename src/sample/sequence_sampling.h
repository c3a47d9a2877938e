// Sampling state of one sequence: the parameters that the sampler reads for each step, and the history for
// penalties. A request with n > 1 has n sequences.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "request/sampling_params.h"
#include "sample/token_history.h"

namespace octavo {

// Returns the seed of choice `index` of a request: the request's seed plus the index. If the request has no
// seed, the result depends on `entropy`, which must be unpredictable and different for each request.
std::uint64_t answer_seed(const SamplingParams& params, int index, std::uint64_t entropy);

class SequenceSampling {
 public:
  // `params` must be validated and must outlive this object. Prompt, eos and bad-word ids outside the
  // vocabulary are ignored, because they have no logit.
  SequenceSampling(const SamplingParams& params, std::span<const TokenId> prompt,
                   std::span<const TokenId> eos_ids, std::uint64_t seed, int vocab_size);

  void append(TokenId id);

  const SamplingParams& params() const { return params_; }
  std::uint64_t seed() const { return seed_; }
  int vocab_size() const { return vocab_size_; }
  // The history is empty if the request has no penalties.
  const TokenHistory& history() const { return history_; }
  // Mask with one bit per token id; 1: allowed. Empty: all tokens are allowed.
  std::span<const std::uint32_t> allowed() const { return allowed_; }
  // logit_bias, sorted by id, without duplicates.
  std::span<const std::pair<TokenId, float>> bias() const { return bias_; }

  // Writes to `bans` the tokens that must not follow `output` and `drafts`: last tokens of bad words, end
  // tokens before min_tokens, and begin_suppress_tokens if both are empty. The ids are ascending, without
  // duplicates. There are at most bans_max() ids.
  void find_bans(std::span<const TokenId> output, std::span<const TokenId> drafts,
                 std::vector<TokenId>& bans) const;
  // Returns whether no token may follow `output` and `drafts`, because `mask`, allowed() or a ban excludes
  // each token. `mask` has one bit per token id; empty: all tokens are allowed. `bans` is scratch memory.
  bool excludes_all(std::span<const std::int32_t> mask, std::span<const TokenId> output,
                    std::span<const TokenId> drafts, std::vector<TokenId>& bans) const;
  bool restricts() const { return !allowed_.empty() || !bias_.empty() || bans_max() > 0; }
  bool penalises() const { return penalises_; }
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
  std::vector<std::span<const TokenId>> bad_words_;  // views into params_
  std::vector<TokenId> not_first_;                   // begin_suppress_tokens
  std::vector<TokenId> ends_;                        // eos and stop tokens, banned until min_tokens
};

}  // namespace octavo
