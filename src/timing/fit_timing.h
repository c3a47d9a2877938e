// From measured steps to the coefficients of a StepTiming.
#pragma once

#include <cstdint>
#include <span>

#include "timing/step_timing.h"

namespace octavo {

struct TimedStep {
  StepWork work;
  std::int64_t microseconds = 0;
};

// The coefficients, none below 0, whose squared relative errors are least. Which side of each maximum a step
// is on decides itself: with the sides given the time is linear (non-negative least squares by coordinate
// descent), with the coefficients given the sides are known; both in turns, from several beginnings. No
// steps: zeros.
StepTiming fit_timing(std::span<const TimedStep> steps);

// |predicted - measured| / measured.
double relative_error(const StepTiming& timing, const TimedStep& step);

}  // namespace octavo
