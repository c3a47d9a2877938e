// The executor of several ranks: rank 0 tells the others what to compute, computes its part, and samples.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/local_executor.h"
#include "engine/rank_processes.h"

namespace octavo {

class RankedExecutor final : public Executor {
 public:
  // Allocates the cache on every rank. Error: one has not got the memory.
  static Result<std::unique_ptr<RankedExecutor>> create(std::unique_ptr<RankProcesses> others,
                                                        std::unique_ptr<LocalExecutor> own,
                                                        std::int64_t blocks, std::int64_t state_slots);

  bool asynchronous() const override { return false; }
  Result<> forward(const Batch& batch) override;
  Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override;
  Result<std::span<SampledToken>> collect() override { return own_->collect(); }

 private:
  RankedExecutor() = default;

  std::unique_ptr<RankProcesses> others_;  // whose group the executor uses
  std::unique_ptr<LocalExecutor> own_;
  std::vector<std::byte> message_;
};

// What a rank other than 0 does once its part is loaded: as rank 0 says, until that fails or goes.
void follow_rank_0(LocalExecutor& own, JoinedRank& joined);

}  // namespace octavo
