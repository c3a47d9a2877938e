// Duration of an engine step, computed from the step's work. Simulated engines use it.
#pragma once

#include <cstdint>

namespace octavo {

struct StepWork {
  std::int64_t tokens = 0;  // number of computed tokens
  // number of cached positions read: sum of the sequences' lengths after the step
  std::int64_t kv_tokens = 0;
  std::int64_t pairs = 0;  // number of (query, key) pairs of attention

  // Adds a sequence: `first` tokens are cached, and `count` tokens are computed.
  void add(std::int64_t first, std::int64_t count) {
    tokens += count;
    kv_tokens += first + count;
    pairs += count * first + count * (count + 1) / 2;
  }
};

// A roofline (Williams et al., CACM 2009), in microseconds. Matrix products and attention run one after the
// other; each takes the time of its data movement or of its arithmetic, whichever is longer. If weights_us
// and pair_us are 0, the time is linear in tokens and cached tokens.
struct StepTiming {
  double fixed_us = 0;     // kernel launches, work of the host, communication
  double weights_us = 0;   // reading all weights
  double token_us = 0;     // matrix products of one token
  double kv_token_us = 0;  // reading one cached position
  double pair_us = 0;      // attention of one (query, key) pair

  static constexpr std::int64_t kLongestUs = 3'600'000'000;  // one hour

  // The value is in [1, kLongestUs].
  std::int64_t microseconds(const StepWork& work) const;
};

}  // namespace octavo
