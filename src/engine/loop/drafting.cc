#include "engine/loop/drafting.h"

#include <algorithm>

#include "base/clock.h"

namespace octavo {

void Drafting::note_planned(AnswerIndex answer, std::span<const TokenId> drafts) {
  counters_.drafts += !drafts.empty();
  counters_.tokens += std::ssize(drafts);
  answers_.account(answer).cost[CostUnit::draft_tokens] += std::ssize(drafts);
}

// Returns false if the next token may depend on the number of reasoning tokens.
bool Drafting::takes_drafts(const Answer& answer) { return !answer.thinking.counts(); }

void Drafting::want(const RowOwner& owner) {
  if (proposes_ && takes_drafts(answers_[owner.answer])) wanting_.push_back(owner);
}

void Drafting::drop_rejected(RowList& rows, std::span<const SampledToken> results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    RowOwner& owner = rows[i];
    if (owner.drafts == 0) continue;
    owner.dropped = rows[i - 1].dropped || results[i - 1].id != owner.last_draft;
    if (!rows[i - 1].dropped) policy_.note(answers_[owner.answer].acceptance, !owner.dropped);
    if (owner.dropped) continue;
    ++counters_.accepted[static_cast<std::size_t>(owner.drafts) - 1];
    if (scheduler_.contains(owner.sequence))
      ++answers_.account(owner.answer).cost[CostUnit::draft_tokens_accepted];
  }
}

void Drafting::note_texts(const StepPlan& plan, const Batch& batch, const RowList& rows,
                          std::span<const SampledToken> results) {
  if (!proposes_) return;
  texts_.clear();
  const std::vector<CacheGroup>& groups = scheduler_.options().groups;
  const auto keeps_all = std::ranges::find(groups, 0, &CacheGroup::window);
  const Batch::Group& group =
      batch.groups[keeps_all != groups.end() ? static_cast<std::size_t>(keeps_all - groups.begin()) : 0];
  const int sequences = static_cast<int>(plan.sequences.size());
  std::size_t row = 0;
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const PlannedSequence& s = plan.sequences[i];
    int drafts = 0;
    TokenId next = kNoDraft;
    for (; row < rows.size() && rows[row].sequence == s.sequence; ++row) {
      if (rows[row].prompt || rows[row].dropped) continue;
      drafts = rows[row].drafts;
      next = results[row].id;
    }
    const Sequence* sequence = scheduler_.find(s.sequence);
    if (sequence == nullptr) continue;
    if (!s.samples) next = sequence->tokens[static_cast<std::size_t>(s.end())];
    if (next < 0) continue;  // the logits are not finite
    const Answer& answer = answers_[s.tag];
    const auto first = static_cast<std::size_t>(batch.query_starts[i]);
    const auto count = static_cast<std::size_t>(s.count + drafts);
    const auto stride = static_cast<std::size_t>(group.table_stride);
    texts_.push_back({.sequence = static_cast<std::uint64_t>(s.sequence),
                      .row = batch.query_starts[i],
                      .first = s.first,
                      .tokens = std::span(batch.ids).subspan(first, count),
                      .next = next,
                      .slots = std::span(group.slots).subspan(first, count),
                      .blocks = std::span(group.tables).subspan(i * stride, stride),
                      .wanted = takes_drafts(answer) && policy_.may_want(sequences, answer.acceptance)});
  }
}

Result<> Drafting::propose(int sequences) {
  if (!proposes_) return {};
  const std::int64_t began_ns = now_ns();
  TRY_VOID(proposer_->read(texts_));
  std::int64_t first_ns = 0;
  if (!wanting_.empty()) {
    TRY(first_ns, draft_texts(sequences));
  }
  const std::int64_t ended_ns = now_ns();
  if (first_ns == 0) first_ns = ended_ns;
  policy_.note_proposed(first_ns - began_ns, ended_ns - first_ns);
  return {};
}

// Returns the result of Proposer::propose().
Result<std::int64_t> Drafting::draft_texts(int sequences) {
  drafts_.resize(std::max(drafts_.size(), wanting_.size()));
  const std::span<Draft> drafts = std::span(drafts_).first(wanting_.size());
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    std::vector<TokenId> memory = std::move(drafts[i].tokens);
    drafts[i] = draft_for(wanting_[i], sequences);
    drafts[i].tokens = std::move(memory);
  }
  TRY(const std::int64_t first_ns, proposer_->propose(drafts));
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    keep_allowed(answers_[wanting_[i].answer], drafts[i].tokens);
    scheduler_.draft(wanting_[i].sequence, drafts[i].tokens);
  }
  wanting_.clear();
  return first_ns;
}

Draft Drafting::draft_for(const RowOwner& owner, int sequences) {
  Answer& answer = answers_[owner.answer];
  const Sequence& s = *scheduler_.find(owner.sequence);
  const int room =
      // Maximum number of draft tokens, given that the last output token is never computed.
      std::max(0, s.spec.max_total_tokens - 1 - s.length());
  return {.sequence = static_cast<std::uint64_t>(owner.sequence),
          .text = s.tokens,
          .prompt_tokens = s.prompt_tokens,
          .sampling = &answer.params(),
          .seed = answer.sampling.seed(),
          .identity = s.spec.identity,
          .isolated = !answer.accepted->request.identity.salt.empty(),
          .most = std::min(
              {policy_.count(sequences, answer.acceptance), scheduler_.options().max_draft_tokens, room})};
}

// Returns false if the token is forbidden, if the grammar forces the text after it, or if checking that takes
// too long for a step. Without draft tokens, forced text is appended and not sampled, but the row after a
// draft token is sampled.
bool Drafting::may_follow(Answer& answer, grammar::Matcher& rule, TokenId token) {
  if (!rule.try_accept(token).value_or(false)) return false;
  if (!answer.takes_forced_tokens()) return true;
  const std::optional<std::vector<TokenId>> forced = rule.try_forced_tokens();
  if (forced && forced->empty()) return true;
  rule.rollback(1);
  return false;
}

// Cuts the draft before the first token that may not follow under the grammar, and after a token that changes
// the grammar's masks.
void Drafting::keep_allowed(Answer& answer, std::vector<TokenId>& draft_tokens) {
  const auto cut_at = [&](TokenId token) {
    draft_tokens.erase(std::ranges::find(draft_tokens, token), draft_tokens.end());
  };
  if (const auto begin = answer.thinking.begin()) cut_at(*begin);
  if (answer.grammar_waits) {
    cut_at(*answer.accepted->request.grammar_after);
  } else if (answer.guided) {
    grammar::Matcher& rule = answer.guided->matcher();
    std::size_t allowed = 0;
    while (allowed < draft_tokens.size() && may_follow(answer, rule, draft_tokens[allowed])) ++allowed;
    rule.rollback(allowed);
    draft_tokens.resize(allowed);
  }
}

void Drafting::note_computed(const StepRecord& record) {
  policy_.note_step(record.prompt_tokens == 0 ? record.answer_tokens : 0, record.microseconds * 1000);
}

void Drafting::end(const Sequence& sequence, SequenceId id) {
  if (proposer_ != nullptr)
    proposer_->end(static_cast<std::uint64_t>(id), sequence.tokens, sequence.prompt_tokens);
}

}  // namespace octavo
