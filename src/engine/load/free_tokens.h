// Measures step times before the engine serves requests. Several tokens take about as long as one token,
// because a step reads each matrix only once from memory. The number of such free tokens depends on the
// model, the processor and the number of threads. DraftPolicy uses it.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "engine/draft/step_times.h"
#include "engine/execute/executor.h"
#include "schedule/options.h"

namespace octavo {

// Range of free_tokens_of(). If fewer than kFreeTokensFewest tokens seem to be free, the result is still
// kFreeTokensFewest, because other programs may have used the processor during the measurement.
inline constexpr int kFreeTokensFewest = 8;
inline constexpr int kFreeTokensMost = 32;

// Returns the number of tokens that a step computes in about the time of one token, from kFreeTokensFewest
// to kFreeTokensMost.
int free_tokens_of(const StepTimes& times);

// Measures steps with 1 to kFreeTokensMost tokens, and stops when steps take too long. The executor must
// have its cache, and no step may have run. Overwrites the first blocks. `now` replaces now_ns() in tests.
// Returns the errors of Executor::forward.
Result<StepTimes> measure_step_times(Executor& executor, const SchedulerOptions& scheduler, int vocab,
                                     const std::function<std::int64_t()>& now = now_ns);

}  // namespace octavo
