// An executor for simulated servers. Its steps take as long as those of a real model, but it computes
// nothing. Tokens depend only on the seed of the request, and each output has the maximum length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/execute/executor.h"
#include "timing/step_timing.h"

namespace octavo {

class TimedExecutor final : public Executor, public BlockExchange {
 public:
  // `blocks` is the format of exported and imported blocks, whose contents are zeros. nullopt: blocks
  // cannot be exported.
  TimedExecutor(const StepTiming& timing, int vocab_size, std::optional<BlockFormat> blocks = {})
      : timing_(timing), vocab_size_(vocab_size), blocks_(std::move(blocks)) {}

  bool asynchronous() const override { return false; }
  Result<> forward(const Batch& batch) override;
  Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override;
  Result<std::span<SampledToken>> collect() override;

  BlockExchange* block_exchange() override { return blocks_ ? this : nullptr; }
  Result<BlockFormat> block_format() const override { return *blocks_; }
  void export_piece(KvLocation, std::span<std::byte> out) const override {
    std::ranges::fill(out, std::byte{0});
  }
  void import_piece(KvLocation, std::span<const std::byte>) override {}

 private:
  StepTiming timing_;
  int vocab_size_;
  std::optional<BlockFormat> blocks_;
  std::int64_t ends_us_ = 0;
  std::vector<SequenceId> last_;
  std::vector<SampledToken> sampled_;
};

}  // namespace octavo
