#include "sample/sequence_sampling.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/check.h"
#include "base/random.h"

namespace octavo {
namespace {

bool ends_with(std::span<const TokenId> output, std::span<const TokenId> drafts,
               std::span<const TokenId> end) {
  const std::size_t in_drafts = std::min(end.size(), drafts.size()), before = end.size() - in_drafts;
  return before <= output.size() && std::ranges::equal(end.last(in_drafts), drafts.last(in_drafts)) &&
         std::ranges::equal(end.first(before), output.last(before));
}

}  // namespace

std::uint64_t answer_seed(const SamplingParams& params, int index, std::uint64_t entropy) {
  const auto answer = static_cast<std::uint64_t>(index);
  if (params.seed) return static_cast<std::uint64_t>(*params.seed) + answer;
  return random_bits(entropy, answer);
}

SequenceSampling::SequenceSampling(const SamplingParams& params, std::span<const TokenId> prompt,
                                   std::span<const TokenId> eos_ids, std::uint64_t seed, int vocab_size)
    : params_(params),
      seed_(seed),
      vocab_size_(vocab_size),
      penalises_(params.penalties.repetition != 1 || params.penalties.frequency != 0 ||
                 params.penalties.presence != 0) {
  for (const TokenId id : params.logprobs.token_ids)
    CHECK(in_vocabulary(id), "token {} to report on, vocabulary of {}", id, vocab_size);
  // Only the repetition penalty applies to prompt tokens.
  if (params.penalties.repetition != 1) {
    for (const TokenId id : prompt)
      if (in_vocabulary(id)) history_.add_prompt(id);
  }

  std::map<TokenId, float> bias(params.tokens.logit_bias.begin(), params.tokens.logit_bias.end());
  std::erase_if(bias, [&](const auto& entry) { return !in_vocabulary(entry.first) || entry.second == 0; });
  bias_.assign(bias.begin(), bias.end());

  if (!params.tokens.allowed_token_ids.empty()) {
    allowed_.assign((static_cast<std::size_t>(vocab_size) + 31) / 32, 0);
    for (const TokenId id : params.tokens.allowed_token_ids)
      if (in_vocabulary(id)) allowed_[static_cast<std::size_t>(id) / 32] |= std::uint32_t{1} << (id % 32);
  }
  for (const std::vector<TokenId>& word : params.tokens.bad_word_ids)
    if (!word.empty() && in_vocabulary(word.back())) bad_words_.emplace_back(word);
  std::ranges::copy_if(params.tokens.begin_suppress_tokens, std::back_inserter(not_first_),
                       [&](TokenId id) { return in_vocabulary(id); });
  if (params.min_tokens > 0) {
    ends_.assign(eos_ids.begin(), eos_ids.end());
    ends_.insert(ends_.end(), params.stop_token_ids.begin(), params.stop_token_ids.end());
    std::erase_if(ends_, [&](TokenId id) { return !in_vocabulary(id); });
  }
}

void SequenceSampling::append(TokenId id) {
  if (penalises_ && in_vocabulary(id)) history_.add_output(id);
}

void SequenceSampling::find_bans(std::span<const TokenId> output, std::span<const TokenId> drafts,
                                 std::vector<TokenId>& bans) const {
  bans.clear();
  for (const auto word : bad_words_)
    if (ends_with(output, drafts, word.first(word.size() - 1))) bans.push_back(word.back());
  const std::size_t tokens = output.size() + drafts.size();
  if (tokens < static_cast<std::size_t>(params_.min_tokens))
    bans.insert(bans.end(), ends_.begin(), ends_.end());
  if (tokens == 0) bans.insert(bans.end(), not_first_.begin(), not_first_.end());
  std::ranges::sort(bans);
  bans.erase(std::ranges::unique(bans).begin(), bans.end());
}

bool SequenceSampling::excludes_all(std::span<const std::int32_t> mask, std::span<const TokenId> output,
                                    std::span<const TokenId> drafts, std::vector<TokenId>& bans) const {
  if (mask.empty() && allowed_.empty()) return false;
  find_bans(output, drafts, bans);
  auto ban = bans.begin();
  for (std::size_t word = 0; word * 32 < static_cast<std::size_t>(vocab_size_); ++word) {
    std::uint32_t left = ~std::uint32_t{0};
    if (!mask.empty()) left &= static_cast<std::uint32_t>(mask[word]);
    if (!allowed_.empty()) left &= allowed_[word];
    for (; ban != bans.end() && static_cast<std::size_t>(*ban) / 32 == word; ++ban)
      left &= ~(std::uint32_t{1} << (*ban % 32));
    if (left != 0) return false;
  }
  return true;
}

}  // namespace octavo
