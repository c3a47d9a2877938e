#include "engine/loop/step_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "timing/step_timing.h"

namespace octavo {
namespace {

constexpr double kLatestShare = 0.1;       // weight of the last step in a running mean
constexpr double kOperationsPerByte = 16;  // used until steps with few tokens and steps with many tokens are
                                           // measured
// A step with at most kFewTokens waits for memory. A step with at least kManyTokens waits for arithmetic.
constexpr int kFewTokens = 8, kManyTokens = 64;

StepWork work_of(const StepPart& part) {
  StepWork work;
  work.add(part.first, part.tokens + part.drafts);
  return work;
}

StepWork work_of(std::span<const StepPart> parts) {
  StepWork work;
  for (const StepPart& part : parts) work.add(part.first, part.tokens + part.drafts);
  return work;
}

void add_to_mean(double& mean, double value) {
  mean = mean == 0 ? value : mean + kLatestShare * (value - mean);
}

}  // namespace

// Rounds the running sum instead of each share, so that the shares add up to `amount`.
void divide(std::int64_t amount, std::span<const double> weights, std::span<std::int64_t> shares) {
  double all = 0;
  for (const double weight : weights) all += weight;
  double sum = 0;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    const bool last = i + 1 == weights.size();
    std::int64_t until = last ? amount : 0;
    if (!last && all > 0) until = std::llround(static_cast<double>(amount) * (sum / all));
    until = std::clamp(until, given, amount);
    shares[i] = until - given;
    given = until;
  }
}

double StepWeights::bytes(double tokens, double kv_tokens) const {
  return figures_.weight_bytes + (tokens + kv_tokens) * figures_.kv_bytes_per_token;
}

double StepWeights::operations(double tokens, double pairs) const {
  return tokens * figures_.operations_per_token + pairs * figures_.operations_per_pair;
}

double StepWeights::operations_per_byte() const {
  if (ns_per_byte_ <= 0 || ns_per_operation_ <= 0) return kOperationsPerByte;
  return ns_per_byte_ / ns_per_operation_;
}

void StepWeights::weigh(std::span<const StepPart> parts, std::span<double> weights) const {
  const StepWork all = work_of(parts);
  const auto tokens = static_cast<double>(all.tokens);
  if (figures_.operations_per_token <= 0) {
    for (std::size_t i = 0; i < parts.size(); ++i) weights[i] = parts[i].tokens + parts[i].drafts;
    return;
  }
  const double per_byte = operations_per_byte();
  const double matrices = std::max(figures_.weight_bytes, tokens * figures_.operations_per_token / per_byte);
  const double read = static_cast<double>(all.kv_tokens) * figures_.kv_bytes_per_token;
  const double calculated = static_cast<double>(all.pairs) * figures_.operations_per_pair / per_byte;
  const double attention = std::max(read, calculated);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const StepWork work = work_of(parts[i]);
    const double share = read > calculated
                             ? static_cast<double>(work.kv_tokens) / static_cast<double>(all.kv_tokens)
                             : static_cast<double>(work.pairs) / static_cast<double>(all.pairs);
    weights[i] = matrices * (static_cast<double>(work.tokens) / tokens) + attention * share;
  }
}

void StepWeights::note(std::span<const StepPart> parts, std::int64_t nanoseconds) {
  const StepWork all = work_of(parts);
  const auto tokens = static_cast<double>(all.tokens);
  const auto ns = static_cast<double>(nanoseconds);
  if (figures_.operations_per_token <= 0 || figures_.weight_bytes <= 0) return;
  if (all.tokens <= kFewTokens)
    add_to_mean(ns_per_byte_, ns / bytes(tokens, static_cast<double>(all.kv_tokens)));
  if (all.tokens >= kManyTokens)
    add_to_mean(ns_per_operation_, ns / operations(tokens, static_cast<double>(all.pairs)));
}

std::vector<StepPart> StepCosts::parts_of(const StepPlan& plan, std::int64_t now_ns) {
  std::vector<StepPart> parts = std::move(spare_);
  parts.clear();
  for (const PlannedSequence& s : plan.sequences) {
    AnswerAccount& account = answers_.account(s.tag);
    account.blocks.hold(s.blocks->held(), now_ns, account.cost);
    parts.push_back({.sequence = s.sequence,
                     .answer = s.tag,
                     .first = s.first,
                     .tokens = s.count,
                     .drafts = static_cast<int>(s.drafts.size())});
  }
  return parts;
}

void StepCosts::note_preempted(const StepPlan& plan, std::int64_t now_ns) const {
  for (const SequenceId preempted : plan.preempted)
    if (const Sequence* sequence = scheduler_.find(preempted)) lost_blocks(sequence->spec.tag, now_ns);
}

void StepCosts::lost_blocks(AnswerIndex index, std::int64_t now_ns) const {
  AnswerAccount& account = answers_.account(index);
  account.blocks.hold(0, now_ns, account.cost);
}

void StepCosts::computed(std::vector<StepPart>&& parts, std::int64_t now_ns) {
  const std::int64_t ns = std::max<std::int64_t>(0, carried_ns_ + now_ns - since_ns_);
  carried_ns_ = 0;
  since_ns_ = now_ns;
  compute_ns_ += ns;
  weights_.note(parts, ns);
  // Ended answers cannot be charged any more, so their parts are removed, and the remaining answers pay for
  // the step.
  std::erase_if(parts, [this](const StepPart& part) { return !scheduler_.contains(part.sequence); });
  if (parts.empty()) unassigned_ns_ += ns;
  work_.resize(parts.size());
  shares_.resize(parts.size());
  weights_.weigh(parts, work_);
  divide(ns, work_, shares_);
  const double microjoules_per_ns = energy_.microjoules_per_ns(now_ns);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    AnswerAccount& account = answers_.account(parts[i].answer);
    account.cost[CostUnit::compute_nanoseconds] += shares_[i];
    if (microjoules_per_ns > 0)
      account.cost[CostUnit::energy_microjoules] +=
          account.energy.take(static_cast<double>(shares_[i]) * microjoules_per_ns);
    account.blocks.settle(now_ns, account.cost);
    account.add_tokens(parts[i].first, parts[i].tokens);
  }
  spare_ = std::move(parts);
}

}  // namespace octavo
