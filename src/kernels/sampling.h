// What the backends share of the sample operator beside its arithmetic (sampling_math.h): a row's arguments
// and outputs, in host memory.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/ops.h"
#include "kernels/sampling_math.h"

namespace octavo::sampling {

// What a row of SampleArgs asks for.
struct Row {
  float temperature;
  int top_k;
  float top_p, min_p;
  std::int64_t random;
  std::int32_t forced;
  float repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::span<const std::int32_t> history, history_counts, bias, reported;
  std::span<const float> bias_values;
  const std::uint32_t* mask = nullptr;  // bits by token id; null: all allowed
  int top_count = -1;

  Row(const SampleArgs& args, std::int64_t r);

  bool greedy() const { return temperature == 0; }
  bool changes_logits() const { return !history.empty() || !bias.empty() || mask != nullptr; }
  bool reports() const { return top_count >= 0; }
  bool allows(std::int64_t id) const { return mask == nullptr || (mask[id / 32] >> (id % 32) & 1) != 0; }
  float penalised(float logit, std::int32_t count) const {
    if (repetition_penalty != 1) logit = logit > 0 ? logit / repetition_penalty : logit * repetition_penalty;
    if (count == 0) return logit;
    return logit - frequency_penalty * static_cast<float>(count) - presence_penalty;
  }
};

// The pieces of the operator's result for one row.
struct RowOutput {
  std::int32_t* id;
  float* logprob;
  std::int32_t* rank;
  std::int32_t* top_ids;
  float* top_logprobs;

  RowOutput(const SampleArgs& args, std::int64_t r);
  // Nothing could be chosen.
  void reject(const Row& row) const;
};

}  // namespace octavo::sampling
