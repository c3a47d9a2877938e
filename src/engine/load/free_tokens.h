// Measures step times before an engine serves. Reading a matrix from memory costs the same for several tokens
// as for one. The number of such free tokens depends on the model, the processor and the number of threads.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "engine/draft/step_times.h"
#include "engine/execute/executor.h"
#include "schedule/options.h"

namespace octavo {

// Limits of the number of tokens that a step computes in about the time of one. The lower limit holds even if
// the measurement is less, because other programs may use the processor.
inline constexpr int kFreeTokensFewest = 8;
inline constexpr int kFreeTokensMost = 32;

// Result from kFreeTokensFewest to kFreeTokensMost.
int free_tokens_of(const StepTimes& times);

// Measures steps of 1 to kFreeTokensMost tokens, until they take too long. The executor has its cache, and no
// step has run yet; the first blocks are overwritten. Errors: those of Executor::forward. now: like now_ns().
Result<StepTimes> measure_step_times(Executor& executor, const SchedulerOptions& scheduler, int vocab,
                                     const std::function<std::int64_t()>& now = now_ns);

}  // namespace octavo
