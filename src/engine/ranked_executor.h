// The executor of several ranks: rank 0 tells the others what to compute, computes its part, and samples.
//
// With several stages of layers, a forward pass begins in the first one at once, while the stages behind it are still
// busy with those before: rank 0, in the last stage, computes its own part when the step is sampled.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "engine/local_executor.h"
#include "engine/ranks.h"

namespace octavo {

class RankedExecutor final : public Executor {
 public:
  // Allocates the cache on every rank. Error: one has not got the memory.
  static Result<std::unique_ptr<RankedExecutor>> create(std::unique_ptr<Ranks> ranks,
                                                        std::unique_ptr<LocalExecutor> own,
                                                        std::int64_t blocks, std::int64_t state_slots);
  ~RankedExecutor() override;  // the others end

  bool asynchronous() const override { return false; }
  int stages() const override { return ranks_->layout().pipeline; }
  Result<> forward(const Batch& batch) override;
  Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override;
  Result<std::span<SampledToken>> collect() override { return own_->collect(); }

 private:
  RankedExecutor() = default;
  Result<> tell();

  std::unique_ptr<Ranks> ranks_;  // whose groups the executor uses
  std::unique_ptr<LocalExecutor> own_;
  std::vector<std::byte> message_;
  std::deque<Batch> waiting_;  // for the stages before: oldest first
};

// What a rank other than 0 does once its part is loaded: as rank 0 says, until that fails or ends. Errors: what failed.
Result<> follow_rank_0(LocalExecutor& own, Ranks& ranks);

}  // namespace octavo
