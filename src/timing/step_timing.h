// How long a step of an engine takes, from what it computes: for engines that only pretend to compute.
#pragma once

#include <cstdint>

namespace octavo {

// What a step asks of the device.
struct StepWork {
  std::int64_t tokens = 0;     // computed
  std::int64_t kv_tokens = 0;  // cached positions read: the length of each sequence after the step
  std::int64_t pairs = 0;      // (query, key) pairs of attention

  // A sequence computes `count` tokens behind `first` others.
  void add(std::int64_t first, std::int64_t count) {
    tokens += count;
    kv_tokens += first + count;
    pairs += count * first + count * (count + 1) / 2;
  }
};

// A roofline (Williams et al., CACM 2009) in microseconds. Matrix products and attention run one after the
// other, and each takes as long as the longer of moving its bytes and doing its arithmetic. With weights_us
// and pair_us zero it is linear: fixed, per token, per cached token.
struct StepTiming {
  double fixed_us = 0;     // launches, host, communication
  double weights_us = 0;   // reading the weights
  double token_us = 0;     // a token's matrix products
  double kv_token_us = 0;  // reading a cached position
  double pair_us = 0;      // a (query, key) pair

  static constexpr std::int64_t kLongestUs = 3'600'000'000;  // an hour

  // From 1 to kLongestUs.
  std::int64_t microseconds(const StepWork& work) const;
};

}  // namespace octavo
