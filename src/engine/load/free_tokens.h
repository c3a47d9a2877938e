// Measures the duration of steps before the engine serves. Several tokens cost about as much as one, because
// a step reads each matrix from memory only once. The number of such free tokens depends on the model, the
// processor and the number of threads.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "engine/draft/step_times.h"
#include "engine/execute/executor.h"
#include "schedule/options.h"

namespace octavo {

// Range of the result. The lower limit also applies if the measured number is lower, because other programs
// may have used the processor.
inline constexpr int kFreeTokensFewest = 8;
inline constexpr int kFreeTokensMost = 32;

// Returns the number of tokens that a step computes in about the time of one token, from kFreeTokensFewest to
// kFreeTokensMost.
int free_tokens_of(const StepTimes& times);

// Measures steps of 1 to kFreeTokensMost tokens, until they take too long. The executor must have its cache,
// and no step may have run; the first blocks are overwritten. Returns the errors of Executor::forward. now:
// replaces now_ns() in tests.
Result<StepTimes> measure_step_times(Executor& executor, const SchedulerOptions& scheduler, int vocab,
                                     const std::function<std::int64_t()>& now = now_ns);

}  // namespace octavo
