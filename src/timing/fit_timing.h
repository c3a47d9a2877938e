// Fits the coefficients of a StepTiming to measured steps, so that a simulated engine takes as long as a
// real one.
#pragma once

#include <cstdint>
#include <span>

#include "timing/step_timing.h"

namespace octavo {

struct TimedStep {
  StepWork work;
  std::int64_t microseconds = 0;
};

// Returns the non-negative coefficients with the smallest sum of squared relative errors, or zeros if
// `steps` is empty. The formula has two maxima. If it is known which term of each maximum is larger, the
// time is linear in the coefficients, and coordinate descent finds them. The new coefficients then say
// which terms are larger. The function alternates between both, from several start values.
StepTiming fit_timing(std::span<const TimedStep> steps);

double relative_error(const StepTiming& timing, const TimedStep& step);

}  // namespace octavo
