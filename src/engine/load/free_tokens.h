// What steps take, measured before an engine serves: a matrix that comes from memory costs as much for
// several tokens as for one, and how many these are differs from one model, processor and number of threads
// to another.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "engine/draft/step_times.h"
#include "engine/execute/executor.h"
#include "schedule/options.h"

namespace octavo {

// Tokens that a step takes along for little more than the price of one. What is taken for granted: a
// processor that others use, too, may measure less.
inline constexpr int kFreeTokensFewest = 8;
inline constexpr int kFreeTokensMost = 32;

// From kFreeTokensFewest to kFreeTokensMost.
int free_tokens_of(const StepTimes& times);

// Of steps of 1 to kFreeTokensMost tokens, as far as these are worth their time. The executor has its cache,
// in which the first blocks are written to; nothing has run in it. Errors: those of Executor::forward. now:
// as now_ns().
Result<StepTimes> measure_step_times(Executor& executor, const SchedulerOptions& scheduler, int vocab,
                                     const std::function<std::int64_t()>& now = now_ns);

}  // namespace octavo
