#include "timing/step_timing.h"

#include <algorithm>
#include <cmath>

namespace octavo {

std::int64_t StepTiming::microseconds(const StepWork& work) const {
  const double products = std::max(weights_us, token_us * static_cast<double>(work.tokens));
  const double attention =
      std::max(kv_token_us * static_cast<double>(work.kv_tokens), pair_us * static_cast<double>(work.pairs));
  return std::llround(std::clamp(fixed_us + products + attention, 1.0, static_cast<double>(kLongestUs)));
}

}  // namespace octavo
