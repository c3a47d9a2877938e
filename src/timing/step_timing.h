// Predicts how long an engine step takes, from the amount of work in the step. Simulated engines wait for
// this time.
#pragma once

#include <cstdint>

namespace octavo {

struct StepWork {
  std::int64_t tokens = 0;
  // cached positions that attention reads: sum of the lengths of all sequences after the step
  std::int64_t kv_tokens = 0;
  std::int64_t pairs = 0;  // (query, key) pairs of attention

  // Adds a sequence that has `first` cached tokens and computes `count` tokens.
  void add(std::int64_t first, std::int64_t count) {
    tokens += count;
    kv_tokens += first + count;
    pairs += count * first + count * (count + 1) / 2;
  }
};

// A roofline (Williams et al., CACM 2009), in microseconds. Matrix products and attention run one after the
// other. Each one takes as long as the slower one of data movement and arithmetic. If weights_us and
// pair_us are 0, the time is linear in tokens and kv_tokens.
struct StepTiming {
  double fixed_us = 0;     // kernel launches, host work, communication
  double weights_us = 0;   // reading all weights once
  double token_us = 0;     // matrix products of one token
  double kv_token_us = 0;  // reading one cached position
  double pair_us = 0;      // attention of one (query, key) pair

  static constexpr std::int64_t kLongestUs = 3'600'000'000;  // one hour

  // The result is in [1, kLongestUs].
  std::int64_t microseconds(const StepWork& work) const;
};

}  // namespace octavo
