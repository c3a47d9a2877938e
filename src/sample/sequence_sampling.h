// Sampling state of one sequence (one choice of a request), updated for each token.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "request/sampling_params.h"
#include "sample/token_history.h"

namespace octavo {

// Seed of choice `index` of a request: the request's seed plus the index, or derived from `entropy`, which
// must differ between requests and be unpredictable.
std::uint64_t answer_seed(const SamplingParams& params, int index, std::uint64_t entropy);

class SequenceSampling {
 public:
  // `params`, validated, must outlive this. Ignores prompt, eos and bad-word ids outside of the vocabulary:
  // they have no logit.
  SequenceSampling(const SamplingParams& params, std::span<const TokenId> prompt,
                   std::span<const TokenId> eos_ids, std::uint64_t seed, int vocab_size);

  // Appends a token to the sequence. O(1).
  void append(TokenId id);

  const SamplingParams& params() const { return params_; }
  std::uint64_t seed() const { return seed_; }
  int vocab_size() const { return vocab_size_; }
  // Empty without penalties.
  const TokenHistory& history() const { return history_; }
  // One bit per token id, set = allowed; an empty mask allows all tokens.
  std::span<const std::uint32_t> allowed() const { return allowed_; }
  // logit_bias by id, each id once.
  std::span<const std::pair<TokenId, float>> bias() const { return bias_; }

  // Writes to `bans` the tokens that must not follow `output`: last tokens of bad words, end tokens before
  // min_tokens, begin_suppress_tokens at the start. Ascending, without duplicates, at most bans_max().
  void find_bans(std::span<const TokenId> output, std::vector<TokenId>& bans) const;
  // Whether no token remains: each one is outside of `mask` (one bit per token id; empty allows all), not
  // allowed, or banned after `output`. `bans` is scratch memory.
  bool excludes_all(std::span<const std::int32_t> mask, std::span<const TokenId> output,
                    std::vector<TokenId>& bans) const;
  // Whether the request allows, bans or biases tokens.
  bool restricts() const { return !allowed_.empty() || !bias_.empty() || bans_max() > 0; }
  // Whether penalties or bans depend on the tokens before.
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
  std::vector<std::span<const TokenId>> bad_words_;  // views into params_
  std::vector<TokenId> not_first_;                   // begin_suppress_tokens
  std::vector<TokenId> ends_;                        // eos and stop tokens, banned until min_tokens
};

}  // namespace octavo
