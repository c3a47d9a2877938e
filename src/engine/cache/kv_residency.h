// Measures how long KV blocks stay in the cache and how often they are used, on a random sample of the
// blocks.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "base/clock.h"
#include "kv/block_pool.h"
#include "request/engine_stats.h"

namespace octavo {

class KvResidency final : public BlockObserver {
 public:
  // `sample` is the measured fraction of the blocks, in (0, 1]. `clock` returns the time in microseconds.
  explicit KvResidency(double sample, std::function<std::int64_t()> clock = now_us);

  void allocated(BlockId block) override;
  void acquired(BlockId block) override;
  void evicted(BlockId block) override;
  void cleared() override { sampled_.clear(); }

  const KvResidencyStats& stats() const { return stats_; }

 private:
  // number of recent uses of a block that are measured, as in vLLM
  static constexpr std::size_t kUsesMax = 4;
  struct Times {
    std::int64_t allocated_us = 0;
    std::size_t uses = 0;
    // times of the recent uses; use n is at index n % kUsesMax
    std::array<std::int64_t, kUsesMax> used_us{};
  };

  const double sample_;
  const std::function<std::int64_t()> clock_;
  std::uint64_t blocks_ = 0;
  std::unordered_map<BlockId, Times> sampled_;
  KvResidencyStats stats_{.enabled = true};
};

}  // namespace octavo
