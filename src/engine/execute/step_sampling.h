// The sampling of a step's tokens, and which of them the host has already.
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

  // Begins to sample: row i is for tokens[i] of the step.
  void begin(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows, const StepPlans& plans);
  // Samples the next rows, after the ones before are collected. logits: see Sampler::launch.
  Result<> launch(const View& logits, std::span<const SampleRow> rows);
  // Waits for the launched rows. Returns all tokens since begin(); valid until the next begin().
  std::span<SampledToken> collect();
  void forget() { results_.clear(); }

  // Fills in tokens that were still being sampled when the step was planned. Returns the number that are
  // still being sampled; these are listed in the inputs.
  std::size_t resolve(const Batch& batch, StepInputs& inputs) const;
  // See Sampler::ids.
  View ids() const { return sampler_.ids(); }

 private:
  Sampler sampler_;
  // Row of each sequence's next token, sorted by sequence.
  std::vector<std::pair<SequenceId, std::int32_t>> owners_;
  std::vector<SampledToken> results_;  // tokens that the host has
  bool sampling_ = false;              // the later rows are being sampled
};

}  // namespace octavo
