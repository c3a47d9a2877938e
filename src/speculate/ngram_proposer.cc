#include "speculate/ngram_proposer.h"

#include "request/engine_stats.h"

namespace octavo {

Result<> validate(const NgramOptions& o) {
  if (o.num_speculative_tokens < 1 || o.num_speculative_tokens > kDraftTokensMax)
    return invalid("num_speculative_tokens", "must be from 1 to {}, got {}", kDraftTokensMax,
                   o.num_speculative_tokens);
  if (o.prompt_lookup_min < 1)
    return invalid("prompt_lookup_min", "must be at least 1, got {}", o.prompt_lookup_min);
  if (o.prompt_lookup_max < o.prompt_lookup_min)
    return invalid("prompt_lookup_max", "must be at least prompt_lookup_min ({}), got {}",
                   o.prompt_lookup_min, o.prompt_lookup_max);
  return {};
}

void NgramProposer::propose(std::span<const TokenId> text, std::vector<TokenId>& drafts) {
  drafts.clear();
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
  for (std::size_t i = 0; i < static_cast<std::size_t>(options_.num_speculative_tokens); ++i)
    drafts.push_back(at + i < size ? text[at + i] : drafts[at + i - size]);
}

}  // namespace octavo
