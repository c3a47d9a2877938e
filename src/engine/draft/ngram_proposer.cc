#include "engine/draft/ngram_proposer.h"

namespace octavo {

Result<std::int64_t> NgramProposer::propose(std::span<Draft> drafts) {
  for (Draft& draft : drafts) propose(draft);
  return {};
}

void NgramProposer::propose(Draft& draft) const {
  draft.tokens.clear();
  if (draft.most <= 0) return;
  const std::span<const TokenId> text = draft.text;
  const std::size_t size = text.size();
  const auto longest = static_cast<std::size_t>(options_.prompt_lookup_max);
  std::size_t best = static_cast<std::size_t>(options_.prompt_lookup_min) - 1, at = 0;
  for (std::size_t end = size - 1; end > best && best < longest; --end) {
    std::size_t alike = 0;
    while (alike < longest && alike < end && text[end - 1 - alike] == text[size - 1 - alike]) ++alike;
    if (alike <= best) continue;
    best = alike;
    at = end;
  }
  if (at == 0) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(draft.most); ++i)
    draft.tokens.push_back(at + i < size ? text[at + i] : draft.tokens[at + i - size]);
}

}  // namespace octavo
