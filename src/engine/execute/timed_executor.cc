#include "engine/execute/timed_executor.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "engine/execute/simulated_executor.h"

namespace octavo {
namespace {

// A step that starts within this time after the previous step counts as if it had started immediately,
// because a real device overlaps the host's work between two steps with the previous step. If a step contains
// a sequence of the previous step, the limit is at least the duration of the step.
constexpr std::int64_t kBackToBackUs = 2'000;

}  // namespace

Result<> TimedExecutor::forward(const Batch& batch) {
  StepWork work;
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const int count = batch.query_starts[s + 1] - batch.query_starts[s];
    work.add(batch.lengths[s] - count, count);
  }
  const std::int64_t now = now_us();
  const bool goes_on = std::ranges::find_first_of(batch.sequences, last_) != batch.sequences.end();
  const std::int64_t duration = timing_.microseconds(work);
  const std::int64_t hidden = goes_on ? std::max(duration, kBackToBackUs) : kBackToBackUs;
  ends_us_ = (now - ends_us_ < hidden ? ends_us_ : now) + duration;
  last_.assign(batch.sequences.begin(), batch.sequences.end());
  return {};
}

Result<> TimedExecutor::sample(std::span<const std::int32_t>, std::span<const SampleRow> rows) {
  sampled_.clear();
  for (const SampleRow& row : rows) {
    const std::uint64_t position = row.output.size() + row.drafts.size();
    const std::uint64_t bits = random_bits(row.sequence->seed(), position);
    const auto drawn = static_cast<TokenId>(bits % static_cast<std::uint64_t>(vocab_size_));
    const TokenId id =
        row.forced >= 0 ? row.forced : SimulatedExecutor::allowed_from(drawn, row.mask, vocab_size_);
    SampledToken& token = sampled_.emplace_back(SampledToken{id, {}});
    const SamplingParams& params = row.sequence->params();
    if (params.logprobs.output || params.logprobs.of_prompt())
      token.logprobs = TokenLogprobs{id, -1.0f, 1, {}};
  }
  return {};
}

Result<std::span<SampledToken>> TimedExecutor::collect() {
  std::this_thread::sleep_for(std::chrono::microseconds(ends_us_ - now_us()));
  return std::span<SampledToken>(sampled_);
}

}  // namespace octavo
