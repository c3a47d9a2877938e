// Arguments and outputs of the sample operator for one row, in host memory. Several backends use them. The
// arithmetic is in sampling_math.h.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/ops.h"
#include "kernels/sampling_math.h"

namespace octavo::sampling {

struct Row : DrawRule {
  std::span<const std::int32_t> history, history_counts, bias, reported;
  std::span<const float> bias_values;
  const std::uint32_t* mask = nullptr;  // one bit per token id; null: all tokens are allowed

  Row(const SampleArgs& args, std::int64_t r);

  bool changes_logits() const { return !history.empty() || !bias.empty() || mask != nullptr; }
  bool allows(std::int64_t id) const { return mask == nullptr || (mask[id / 32] >> (id % 32) & 1) != 0; }
};

struct RowOutput {
  std::int32_t* id;
  float* logprob;
  std::int32_t* rank;
  std::int32_t* top_ids;
  float* top_logprobs;

  RowOutput(const SampleArgs& args, std::int64_t r);
  // Writes the outputs of a row from which no token can be sampled.
  void reject(const Row& row) const;
};

}  // namespace octavo::sampling
