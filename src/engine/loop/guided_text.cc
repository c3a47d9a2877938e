#include "engine/loop/guided_text.h"

#include <utility>

#include "base/out_of_memory.h"

namespace octavo {

GuidedText::GuidedText(std::shared_ptr<const grammar::CompiledGrammar> grammar, int vocab_size)
    : matcher_(std::move(grammar)), mask_((static_cast<std::size_t>(vocab_size) + 31) / 32) {}

bool GuidedText::take(TokenId token) {
  if (taken_ahead_ > 0) {
    --taken_ahead_;
    return true;
  }
  filled_ = false;
  if (untaken_.empty()) {
    if (matcher_.vocabulary().contains(token) && matcher_.vocabulary().is_eos(token))
      return matcher_.accept(token);
    if (const std::optional<bool> taken = matcher_.try_accept(token)) return *taken;
  }
  untaken_.push_back(token);
  return true;
}

std::vector<TokenId> GuidedText::try_jump() {
  std::optional<std::vector<TokenId>> forced;
  if (untaken_.empty()) forced = matcher_.try_forced_tokens();
  wants_jump_ = !forced;
  return std::move(forced).value_or(std::vector<TokenId>{});
}

bool GuidedText::try_fill() {
  if (!untaken_.empty() || wants_jump_) return false;
  const std::optional<Result<>> tried = matcher_.try_fill_mask(mask_);
  if (!tried) return false;
  outcome_ = *tried;
  return filled_ = true;
}

void GuidedText::advance() {
  jump_.clear();
  taken_ahead_ = 0;
  outcome_ = within_memory([&] { return catch_up(); });
  filled_ = true;
}

Result<> GuidedText::catch_up() {
  for (const TokenId token : std::exchange(untaken_, {})) {
    if (matcher_.accept(token)) continue;
    return failure(ErrorCode::internal, "the grammar does not accept this token");
  }
  if (std::exchange(wants_jump_, false)) {
    for (const TokenId token : matcher_.forced_tokens()) {
      if (!matcher_.accept(token)) continue;
      jump_.push_back(token);
      ++taken_ahead_;
    }
  }
  return matcher_.fill_mask(mask_);
}

Result<std::span<const std::int32_t>> GuidedText::mask() const {
  if (!outcome_) return std::unexpected(outcome_.error());
  return std::span<const std::int32_t>(mask_);
}

}  // namespace octavo
