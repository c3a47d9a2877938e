// Sampling parameters of one row, for the sample operator. Device code includes this header, so it includes
// almost nothing. As in sampling_math.h, all backends share the formulas.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/on_device.h"

namespace octavo {

// The default value of a field has no effect on sampling. The formula of a parameter is a function below,
// or code in each backend.
struct DrawRule {
  std::int64_t random = 0;
  float temperature = 1;         // 0: greedy, without filters; otherwise at least 1e-5
  float top_p = 1;               // 1: off
  float min_p = 0;               // 0: off
  std::int32_t top_k = 0;        // 0: off
  float repetition_penalty = 1;  // the three penalties require SampleArgs::history
  float frequency_penalty = 0;
  float presence_penalty = 0;
  std::int32_t mask_row = -1;   // row of SampleArgs::mask with the allowed tokens; -1: all tokens are allowed
  std::int32_t forced = -1;     // token to return, with its raw logprob, instead of sampling; -1: sample
  std::int32_t top_count = -1;  // number of most likely tokens to report with logprobs; -1: no logprobs

  OCTAVO_HOST_DEVICE bool greedy() const { return temperature == 0; }
  OCTAVO_HOST_DEVICE bool reports() const { return top_count >= 0; }
  // Returns the lowest exponent that min_p keeps. Exponents are relative to the exponent of the most likely
  // token.
  OCTAVO_HOST_DEVICE float least_exponent() const {
    return min_p > 0 ? static_cast<float>(std::log(static_cast<double>(min_p))) : -INFINITY;
  }
  // Returns the logit after the penalties. `count` is the number of times that the token occurs in the
  // output; 0 means that the token occurs only in the prompt.
  OCTAVO_HOST_DEVICE float penalised(float logit, std::int32_t count) const {
    if (repetition_penalty != 1) logit = logit > 0 ? logit / repetition_penalty : logit * repetition_penalty;
    if (count == 0) return logit;
    return logit - frequency_penalty * static_cast<float>(count) - presence_penalty;
  }
};

}  // namespace octavo
