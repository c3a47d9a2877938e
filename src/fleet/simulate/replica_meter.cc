#include "fleet/simulate/replica_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace octavo::fleet {
namespace {

double quantile(std::vector<double>& times, double share) {
  if (times.empty()) return -1;
  const auto below = std::ceil(share * static_cast<double>(times.size())) - 1;
  const auto at = times.begin() + std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(below));
  std::ranges::nth_element(times, at);
  return *at;
}

}  // namespace

void ReplicaMeter::first_token(const traffic::AnswerTimes& answer) {
  reading_.tokens += answer.input_tokens;
  ttft_ms_.push_back(traffic::times_of(answer).ttft);
}

void ReplicaMeter::finished(const traffic::AnswerTimes& answer) {
  reading_.finished += 1;
  if (answer.output_tokens > 1) tpot_ms_.push_back(traffic::times_of(answer).tpot);
}

ReplicaReading ReplicaMeter::read(double share, int running, int waiting) {
  ReplicaReading reading = std::exchange(reading_, {});
  reading.running = running;
  reading.waiting = waiting;
  reading.ttft_ms = quantile(ttft_ms_, share);
  reading.tpot_ms = quantile(tpot_ms_, share);
  ttft_ms_.clear();
  tpot_ms_.clear();
  return reading;
}

}  // namespace octavo::fleet
