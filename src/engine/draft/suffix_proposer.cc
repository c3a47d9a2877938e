#include "engine/draft/suffix_proposer.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

constexpr TokenId kEnd = -1;  // separator after each kept output

// Maximum number of matches with the end of the sequence, and maximum number of positions that are compared
// to find them, latest first. The second limit includes positions of other token pairs in the same hash
// bucket.
constexpr std::size_t kMatchesMax = 64;
constexpr int kMatchesTriedMax = 256;

}  // namespace

Result<std::int64_t> SuffixProposer::propose(std::span<Draft> drafts) {
  for (Draft& draft : drafts) {
    Own& own = own_[draft.sequence];
    own.isolated = draft.isolated;
    while (own.text.size() < draft.text.size()) own.text.append(draft.text[own.text.size()]);
    draft.tokens.clear();
    if (draft.most <= 0) continue;
    best_ = 0;
    propose(own.text, draft);
    if (draft.isolated) continue;
    propose(young_, draft);
    propose(old_, draft);
  }
  return {};
}

void SuffixProposer::end(std::uint64_t sequence, std::span<const TokenId> text, int prompt_tokens) {
  const auto own = own_.extract(sequence);
  if (own.empty() || own.mapped().isolated || options_.max_cached_requests == 0) return;
  const auto answer = text.subspan(static_cast<std::size_t>(prompt_tokens));
  if (answer.size() + 1 > kKeptTokensMax / 2) return;
  if (young_answers_ >= (options_.max_cached_requests + 1) / 2 ||
      young_.size() + answer.size() + 1 > kKeptTokensMax / 2) {
    old_ = std::exchange(young_, {});
    young_answers_ = 0;
  }
  for (const TokenId token : answer) young_.append(token);
  young_.append(kEnd);
  ++young_answers_;
}

// Replaces the draft tokens if `known` contains a continuation with a higher expected number of accepted
// tokens.
void SuffixProposer::propose(const SuffixText& known, Draft& draft) {
  find_matches(known, draft.text);
  // Tries the longest matches first, then adds matches with one token less, and so on.
  for (std::size_t count = 0; count < matches_.size();) {
    const int alike = matches_[count].alike;
    while (count < matches_.size() && matches_[count].alike == alike) ++count;
    const int most = std::min(
        {draft.most, options_.max_tree_depth, static_cast<int>(alike * options_.max_spec_factor + 1e-6)});
    const double expected = follow(known, count, most);
    if (expected <= best_) continue;
    best_ = expected;
    std::swap(draft.tokens, draft_tokens_);
  }
}

void SuffixProposer::find_matches(const SuffixText& known, std::span<const TokenId> text) {
  matches_.clear();
  if (text.size() < 2) return;
  const auto depth = std::min(static_cast<std::size_t>(options_.max_tree_depth), text.size());
  std::uint32_t position = known.last(text[text.size() - 2], text.back());
  for (int i = 0; i < kMatchesTriedMax && matches_.size() < kMatchesMax && position != SuffixText::kNowhere;
       ++i, position = known.before(position)) {
    if (position + 1 == known.size()) continue;
    std::size_t alike = 0;
    while (alike < depth && alike <= position &&
           known[position - static_cast<std::uint32_t>(alike)] == text[text.size() - 1 - alike])
      ++alike;
    if (alike >= 2) matches_.push_back({position, static_cast<int>(alike)});
  }
  std::ranges::stable_sort(matches_, std::ranges::greater(), &Match::alike);
}

// Sets draft_tokens_ to the most frequent continuation of the first `matches` matches. If two tokens are
// equally frequent, the longest and latest match decides. Returns the expected number of accepted tokens.
double SuffixProposer::follow(const SuffixText& known, std::size_t matches, int most) {
  draft_tokens_.clear();
  alive_.clear();
  for (std::size_t i = 0; i < matches; ++i) alive_.push_back(matches_[i].position);
  double likely = 1, expected = 0;
  while (static_cast<int>(draft_tokens_.size()) < most && !alive_.empty()) {
    votes_.clear();
    for (std::uint32_t& position : alive_) {
      ++position;
      const TokenId next = position < known.size() ? known[position] : kEnd;
      const auto vote = std::ranges::find(votes_, next, &std::pair<TokenId, int>::first);
      if (vote == votes_.end())
        votes_.emplace_back(next, 1);
      else
        ++vote->second;
    }
    std::erase_if(votes_, [](const auto& vote) { return vote.first == kEnd; });
    if (votes_.empty()) break;
    const auto [token, count] = *std::ranges::max_element(votes_, {}, &std::pair<TokenId, int>::second);
    likely *= static_cast<double>(count) / static_cast<double>(alive_.size());
    if (likely < options_.min_token_prob) break;
    expected += likely;
    draft_tokens_.push_back(token);
    std::erase_if(
        alive_, [&](std::uint32_t position) { return position >= known.size() || known[position] != token; });
  }
  return expected;
}

}  // namespace octavo
