#include "engine/execute/step_sampling.h"

#include <algorithm>

#include "base/check.h"

namespace octavo {

Result<> StepSampling::reserve(std::int64_t rows, std::int64_t vocab, int max_sequences) {
  owners_.reserve(static_cast<std::size_t>(max_sequences));
  return sampler_.reserve(rows, vocab);
}

void StepSampling::begin(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows,
                         const StepPlans& plans) {
  results_.clear();
  owners_.clear();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].forced >= 0) continue;
    owners_.emplace_back(plans.id_of(tokens[r]), static_cast<std::int32_t>(r));
  }
  std::ranges::sort(owners_);
}

Result<> StepSampling::launch(const View& logits, std::span<const SampleRow> rows) {
  TRY_VOID(sampler_.launch(logits, rows));
  sampling_ = true;
  return {};
}

std::span<SampledToken> StepSampling::collect() {
  if (std::exchange(sampling_, false))
    for (SampledToken& token : sampler_.collect()) results_.push_back(std::move(token));
  return results_;
}

std::size_t StepSampling::resolve(const Batch& batch, StepInputs& inputs) const {
  const auto ids = inputs.host(inputs.ids);
  const auto tokens = inputs.host(inputs.pending_tokens);
  const auto rows = inputs.host(inputs.pending_rows);
  std::size_t count = 0;
  for (const Batch::Pending& p : batch.pending) {
    const SequenceId sequence = batch.sequences[static_cast<std::size_t>(p.sequence)];
    const auto owner =
        std::ranges::lower_bound(owners_, sequence, {}, &std::pair<SequenceId, std::int32_t>::first);
    CHECK(owner != owners_.end() && owner->first == sequence, "a pending token that nobody samples");
    const auto row = static_cast<std::size_t>(owner->second);
    if (row < results_.size()) {
      ids[static_cast<std::size_t>(p.token)] = std::max(results_[row].id, 0);
    } else {
      tokens[count] = p.token;
      rows[count++] = static_cast<std::int32_t>(row - results_.size());
    }
  }
  return count;
}

}  // namespace octavo
