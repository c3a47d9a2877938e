#include "engine/execute/step_plans.h"

#include <algorithm>
#include <array>
#include <utility>

namespace octavo {

StepPlans::StepPlans(const Model& model, const CacheLayout& layout, Backend& backend, int max_tokens)
    : model_(model), layout_(layout), backend_(backend), max_tokens_(max_tokens) {}

Result<StepPlans> StepPlans::create(const Model& model, const CacheLayout& layout, Backend& backend,
                                    int max_tokens, int max_sequences) {
  StepPlans plans(model, layout, backend, max_tokens);
  for (const LayerGroup& group : layout.groups) {
    TRY(auto plan, backend.ops.make_attention_plan(
                       *backend.device, attention_limits(model, group, max_tokens, max_sequences)));
    plans.plans_.push_back(std::move(plan));
  }
  const auto sequences = static_cast<std::size_t>(max_sequences);
  plans.query_starts_.reserve(sequences + 1);
  plans.lengths_.reserve(sequences);
  plans.ids_.reserve(sequences);
  plans.groups_.reserve(layout.groups.size());
  return plans;
}

void StepPlans::plan(const Batch& batch, int size) {
  ids_.assign(batch.sequences.begin(), batch.sequences.end());
  query_starts_.assign(batch.query_starts.begin(), batch.query_starts.end());
  lengths_.assign(batch.lengths.begin(), batch.lengths.end());
  if (size > 0) {
    query_starts_.resize(static_cast<std::size_t>(size) + 1, query_starts_.back());
    lengths_.resize(static_cast<std::size_t>(size), 0);
  }
  for (std::size_t g = 0; g < plans_.size(); ++g) {
    const Batch::Group& group = batch.groups[g];
    backend_.ops.plan_attention(*backend_.stream,
                                {.query_starts = query_starts_,
                                 .lengths = lengths_,
                                 .block_tables = group.tables,
                                 .table_stride = group.table_stride,
                                 .recorded = size > 0},
                                *plans_[g]);
  }
}

Result<> StepPlans::plan_wholes(const Batch& batch) {
  wholes_.clear();
  for (const Batch::Whole& whole : batch.wholes) {
    if (wholes_.size() == whole_plans_.size()) TRY_VOID(add_whole_plans());
    const std::array<std::int32_t, 2> starts{0, whole.count};
    const std::array<std::int32_t, 1> length{
        batch.positions[static_cast<std::size_t>(whole.token + whole.count) - 1] + 1};
    WholeSpan& span =
        wholes_.emplace_back(WholeSpan{.token = whole.token, .count = whole.count, .plans = {}});
    for (std::size_t g = 0; g < plans_.size(); ++g) {
      const Batch::Group& group = batch.groups[g];
      AttentionPlan& plan = *whole_plans_[wholes_.size() - 1][g];
      const auto stride = static_cast<std::size_t>(group.table_stride);
      backend_.ops.plan_attention(
          *backend_.stream,
          {.query_starts = starts,
           .lengths = length,
           .block_tables =
               std::span(group.tables).subspan(static_cast<std::size_t>(whole.sequence) * stride, stride),
           .table_stride = group.table_stride,
           .recorded = false},
          plan);
      span.plans.push_back(&plan);
    }
  }
  return {};
}

Result<> StepPlans::add_whole_plans() {
  Plans plans;
  for (const LayerGroup& group : layout_.groups) {
    AttentionLimits limits = attention_limits(model_, group, max_tokens_, 1);
    limits.causal = false;
    TRY(plans.emplace_back(), backend_.ops.make_attention_plan(*backend_.device, limits));
  }
  whole_plans_.push_back(std::move(plans));
  return {};
}

std::span<const GroupBatch> StepPlans::groups(const StepInputs& inputs) {
  groups_.clear();
  for (std::size_t g = 0; g < plans_.size(); ++g)
    groups_.push_back({plans_[g].get(), inputs.device(inputs.slots[g])});
  return groups_;
}

std::size_t StepPlans::sequence_of(std::int32_t token) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(query_starts_, token) - query_starts_.begin()) - 1;
}

}  // namespace octavo
