#include "engine/loop/rows.h"

#include <algorithm>

namespace octavo {

void RowList::cut(std::size_t size) {
  tokens_.resize(std::min(tokens_.size(), size));
  rows_.resize(std::min(rows_.size(), size));
  owners_.erase(owners_.begin() + static_cast<std::ptrdiff_t>(std::min(owners_.size(), size)), owners_.end());
}

void RowList::add(const RowOwner& owner, std::int32_t token, const SampleRow& row) {
  tokens_.push_back(token);
  rows_.push_back(row);
  owners_.push_back(owner);
}

std::span<std::int32_t> RowList::next_mask(std::size_t words) {
  masks_.resize(std::max(masks_.size(), size() + 1));
  masks_[size()].resize(words);
  return masks_[size()];
}

std::span<const std::int32_t> RowList::next_mask_of(TokenId token, int vocab_size) {
  const std::span<std::int32_t> words = next_mask((static_cast<std::size_t>(vocab_size) + 31) / 32);
  std::ranges::fill(words, 0);
  words[static_cast<std::size_t>(token) / 32] = static_cast<std::int32_t>(std::uint32_t{1} << token % 32);
  return words;
}

// The logits at position p give the logprob of the prompt token at p + 1. Positions that are computed again
// after a preemption get no row.
void RowChooser::add_prompt_rows(const PlannedSequence& s, int first_token, RowList& rows) {
  Answer& answer = answers_[s.tag];
  const std::vector<TokenId>& prompt = answer.accepted->request.prompt;
  const LogprobRequest& requested = answer.params().logprobs;
  const int end = std::min(s.first + s.count, static_cast<int>(prompt.size()) - 1);
  const int begin = requested.prompt ? 0 : requested.prompt_start;
  for (int p = std::max({s.first, answer.prompt_logprobs_count, begin}); p < end; ++p) {
    SampleRow row;
    row.forced = prompt[static_cast<std::size_t>(p) + 1];
    if (!requested.prompt_token_ids.empty() && p >= requested.prompt_start)
      row.listed = requested.prompt_token_ids[static_cast<std::size_t>(p - requested.prompt_start)];
    add(s, {.sequence = s.sequence, .answer = s.tag, .prompt = true}, first_token + p - s.first, row, rows);
  }
  answer.prompt_logprobs_count = std::max(answer.prompt_logprobs_count, end);
}

// A grammar that exceeds its limit or allows no token is the request's fault: returns invalid_argument,
// because a retry would fail again.
static Error error_of_mask(Error error, const Request& request) {
  if (error.code != ErrorCode::resource_exhausted) return error;
  return {ErrorCode::invalid_argument, std::move(error.message), request.grammar->field};
}

Result<bool> RowChooser::add_answer_rows(const PlannedSequence& s, int last_token, RowList& rows) {
  Answer& answer = answers_[s.tag];
  GuidedText* const rule = answer.rule();
  std::size_t followed = 0;
  for (int drafts = 0; drafts <= static_cast<int>(s.drafts.size()); ++drafts) {
    const TokenId draft_token = drafts == 0 ? kNoDraft : s.drafts[static_cast<std::size_t>(drafts) - 1];
    SampleRow row;
    row.drafts = std::span(s.drafts).first(static_cast<std::size_t>(drafts));
    if (rule && drafts == 0) {
      const auto mask = rule->mask();
      if (!mask) return std::unexpected(error_of_mask(mask.error(), answer.accepted->request));
      row.mask = *mask;
    } else if (rule) {
      const std::span<std::int32_t> words = rows.next_mask(rule->mask_words());
      if (!guidance_.follow_draft(*rule, draft_token, words)) break;
      row.mask = words;
      followed = static_cast<std::size_t>(drafts);
    } else if (const auto forced = answer.thinking.forced()) {
      row.mask = rows.next_mask_of(*forced, answer.sampling.vocab_size());
    }
    if (answer.sampling.excludes_all(row.mask, scheduler_.output(s.sequence), row.drafts, bans_)) {
      if (drafts > 0) break;  // no token may follow; the next step ends the answer
      if (rule && rule->matcher().can_terminate()) return false;
      return invalid("",
                     "after {} tokens no token is possible: allowed_token_ids, bad_words, min_tokens and the "
                     "structured output of this request exclude each other",
                     scheduler_.output(s.sequence).size());
    }
    add(s, {s.sequence, s.tag, false, drafts, draft_token}, last_token + drafts, row, rows);
  }
  if (rule) rule->matcher().rollback(followed);
  return true;
}

void RowChooser::add(const PlannedSequence& s, const RowOwner& owner, std::int32_t token, SampleRow row,
                     RowList& rows) {
  row.sequence = &answers_[s.tag].sampling;
  row.output = scheduler_.output(s.sequence);
  rows.add(owner, token, row);
}

}  // namespace octavo
