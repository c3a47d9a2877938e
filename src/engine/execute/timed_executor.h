// A device that takes as long as a model would and computes nothing, for servers that simulate others. Tokens
// depend on the request's seed, and no answer ends before its maximum length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/execute/executor.h"
#include "timing/step_timing.h"

namespace octavo {

class TimedExecutor final : public Executor {
 public:
  TimedExecutor(const StepTiming& timing, int vocab_size) : timing_(timing), vocab_size_(vocab_size) {}

  bool asynchronous() const override { return false; }
  Result<> forward(const Batch& batch) override;
  Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override;
  // Waits until the step's time is over.
  Result<std::span<SampledToken>> collect() override;

 private:
  StepTiming timing_;
  int vocab_size_;
  std::int64_t ends_us_ = 0;      // end of the last step
  std::vector<SequenceId> last_;  // its sequences
  std::vector<SampledToken> sampled_;
};

}  // namespace octavo
