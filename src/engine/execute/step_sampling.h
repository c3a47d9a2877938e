// Samples the tokens of a step in chunks of rows, and remembers which results have reached the host.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/execute/batch.h"
#include "engine/execute/step_inputs.h"
#include "engine/execute/step_plans.h"
#include "sample/sampler.h"

namespace octavo {

class StepSampling {
 public:
  StepSampling(Backend& backend, const SamplerOptions& options) : sampler_(backend, options) {}

  Result<> reserve(std::int64_t rows, std::int64_t vocab, int max_sequences);

  // Starts to sample. Row i uses the logits of token tokens[i] of the step.
  void begin(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows, const StepPlans& plans);
  // Launches the sampling of the next rows. The rows of the previous launch must have been collected. For
  // `logits`, see Sampler::launch.
  Result<> launch(const View& logits, std::span<const SampleRow> rows);
  // Waits for the launched rows. Returns all tokens since begin(), valid until the next begin().
  std::span<SampledToken> collect();
  void forget() { results_.clear(); }

  // Fills in the tokens that were still being sampled when the step was planned, if they have reached the
  // host. Lists the other tokens in the inputs, and returns their number.
  std::size_t resolve(const Batch& batch, StepInputs& inputs) const;
  // See Sampler::ids.
  View ids() const { return sampler_.ids(); }

 private:
  Sampler sampler_;
  // Row of the next token of each sequence, sorted by sequence.
  std::vector<std::pair<SequenceId, std::int32_t>> owners_;
  std::vector<SampledToken> results_;  // results that have reached the host
  bool sampling_ = false;              // whether later rows are still being sampled
};

}  // namespace octavo
