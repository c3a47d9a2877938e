// Fits the coefficients of a StepTiming to measured steps.
#pragma once

#include <cstdint>
#include <span>

#include "timing/step_timing.h"

namespace octavo {

struct TimedStep {
  StepWork work;
  std::int64_t microseconds = 0;
};

// Returns the non-negative coefficients with the smallest squared relative error; zeros if there are no
// steps. The formula has two maxima. If the larger side of each maximum is fixed, the time is linear in the
// coefficients, which are solved by coordinate descent. The new coefficients then determine the sides again.
// These two steps alternate, from several start values.
StepTiming fit_timing(std::span<const TimedStep> steps);

// Value: |predicted - measured| / measured.
double relative_error(const StepTiming& timing, const TimedStep& step);

}  // namespace octavo
