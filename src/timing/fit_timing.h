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
// steps. With fixed sides of the maxima the time is linear (non-negative least squares by coordinate
// descent); new coefficients then give new sides. Alternates both, from several start values.
StepTiming fit_timing(std::span<const TimedStep> steps);

// |predicted - measured| / measured.
double relative_error(const StepTiming& timing, const TimedStep& step);

}  // namespace octavo
