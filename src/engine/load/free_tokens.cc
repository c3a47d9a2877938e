#include "engine/load/free_tokens.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/log.h"
#include "sample/sequence_sampling.h"

namespace octavo {
namespace {

constexpr int kCounts[] = {1, 2, 4, kFreeTokensFewest, 12, 16, 24, kFreeTokensMost};
// Tokens are free if the step takes at most this multiple of the time with one token. Up to this limit, a
// draft token with an acceptance rate of one half saves more time than it costs.
constexpr double kMostTime = 1.75;
constexpr int kRuns = 5;                           // number of runs of each size; the fastest run counts
constexpr std::int64_t kPatienceNs = 100'000'000;  // time limit for all runs of one size, in ns

bool is_free(const StepTimes& times, int tokens) {
  return times.knows(tokens) &&
         static_cast<double>(times.of(tokens)) <= kMostTime * static_cast<double>(times.of(1));
}

}  // namespace

int free_tokens_of(const StepTimes& times) {
  int free = kFreeTokensFewest;
  for (const int count : kCounts)
    if (is_free(times, count)) free = std::max(free, count);
  return free;
}

Result<StepTimes> measure_step_times(Executor& executor, const SchedulerOptions& scheduler, int vocab,
                                     const std::function<std::int64_t()>& now) {
  SamplingParams params;
  params.temperature = 0;
  const SequenceSampling sampling(params, {}, {}, 0, vocab);
  const auto fastest = [&](int tokens) -> Result<std::int64_t> {
    const Batch batch =
        new_texts({&tokens, 1}, static_cast<int>(scheduler.groups.size()), scheduler.block_size, vocab);
    const std::vector<SampleRow> rows(batch.positions.size(), {.sequence = &sampling, .output = {}});
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    const std::int64_t begin = now();
    for (int run = 0; run < kRuns && (run == 0 || now() - begin < kPatienceNs); ++run) {
      const std::int64_t before = now();
      TRY_VOID(executor.forward(batch));
      TRY_VOID(executor.sample(batch.positions, rows));
      TRY_VOID(executor.collect());
      best = std::min(best, now() - before);
    }
    return best;
  };
  const int most = std::min({scheduler.max_num_batched_tokens, scheduler.max_model_len,
                             scheduler.num_blocks * scheduler.block_size});
  TRY_VOID(fastest(1));  // the first run is not measured, because it touches new memory
  StepTimes times;
  for (const int count : kCounts) {
    if (count > most) break;
    TRY(const std::int64_t time, fastest(count));
    times.note(count, time);
    if (count > kFreeTokensFewest && !is_free(times, count)) break;
  }
  log_info("a step may contain up to {} tokens with draft tokens; one token takes {} us",
           free_tokens_of(times), times.of(1) / 1000);
  return times;
}

}  // namespace octavo
