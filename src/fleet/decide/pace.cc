#include "fleet/decide/pace.h"

#include <algorithm>
#include <cmath>

namespace octavo::fleet {
namespace {

constexpr double kNewestShare = 0.02;  // weight of the newest measurement in a moving average
constexpr int kMeasuredMin = 4;        // a rate needs at least this number of measurements
constexpr int kMeasuredMax = 1'000;
// a measurement that is larger than this multiple of the rate counts as this multiple
constexpr double kOddMax = 8;
// Output tokens in one measurement. More than one, because several tokens may arrive together.
constexpr std::int64_t kSpanTokens = 8;
// Prompts with fewer tokens are not measured: they take one step whatever their length, so their time does
// not show the time per token.
constexpr std::int64_t kPromptTokens = 16;
constexpr double kEqual = 1.5;        // rates within this factor count as equal
constexpr double kHalfLifeUs = 30e6;  // half-life of the weight of a measurement
constexpr std::int64_t kCompareUs = 100'000;

}  // namespace

void Pace::Rate::learn(double new_us, double new_tokens) {
  if (known()) new_us = std::min(new_us, kOddMax * us_per_token() * new_tokens);
  measured = std::min(measured + 1, kMeasuredMax);
  const double share = std::max(kNewestShare, 1.0 / measured);
  us += share * (new_us - us);
  tokens += share * (new_tokens - tokens);
}

bool Pace::Rate::known() const { return measured >= kMeasuredMin && us > 0; }

Pace::Speed& Pace::speed(EndpointId endpoint, std::int64_t now_us) {
  if (endpoint >= speeds_.size()) speeds_.resize(endpoint + std::size_t{1});
  speeds_[endpoint].measured_us = now_us;
  return speeds_[endpoint];
}

void Pace::first_token(EndpointId endpoint, Progress& progress, std::int64_t now_us) {
  if (progress.prompt_tokens >= kPromptTokens)
    speed(endpoint, now_us)
        .prompts.learn(static_cast<double>(now_us - progress.since_us),
                       static_cast<double>(progress.prompt_tokens));
  progress.prompt_tokens = 0;
  progress.since_us = now_us;
}

void Pace::grow(EndpointId endpoint, Progress& progress, std::int64_t new_tokens, std::int64_t now_us) {
  progress.output_tokens += new_tokens;
  progress.tokens += new_tokens;
  if (progress.tokens < kSpanTokens) return;
  speed(endpoint, now_us)
      .outputs.learn(static_cast<double>(now_us - progress.since_us), static_cast<double>(progress.tokens));
  progress.tokens = 0;
  progress.since_us = now_us;
}

void Pace::ended(const Progress& progress) {
  if (progress.output_tokens == 0) return;
  const auto tokens = static_cast<double>(progress.output_tokens);
  answer_tokens_ += answer_tokens_ == 0 ? tokens : kNewestShare * (tokens - answer_tokens_);
}

void Pace::forget(EndpointId endpoint) {
  if (endpoint < speeds_.size()) speeds_[endpoint] = {};
}

double Pace::median(Rate Speed::* rate, bool with_outputs) const {
  std::vector<double> known;
  for (const Speed& speed : speeds_)
    if (speed.outputs.known() == with_outputs && (speed.*rate).known())
      known.push_back((speed.*rate).us_per_token());
  if (known.empty()) return 0;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>((known.size() - 1) / 2);
  std::ranges::nth_element(known, middle);
  return *middle;
}

// Endpoints whose output tokens arrive all together (whole answers, prefill workers) are compared only with
// each other, by the time until the answer arrives.
void Pace::compare(std::int64_t now_us) {
  if (compared_us_ != kNeverObserved && now_us - compared_us_ < kCompareUs) return;
  compared_us_ = now_us;
  const double output_us = median(&Speed::outputs, true), prompt_us = median(&Speed::prompts, true);
  const double whole_us = median(&Speed::prompts, false);
  answer_in_prompt_tokens_ = prompt_us > 0 ? answer_tokens_ * output_us / prompt_us : 0;
  slowness_.assign(speeds_.size(), 1);
  for (std::size_t i = 0; i < speeds_.size(); ++i) {
    const Speed& speed = speeds_[i];
    const Rate& rate = speed.outputs.known() ? speed.outputs : speed.prompts;
    if (!rate.known()) continue;
    const double ratio = rate.us_per_token() / (speed.outputs.known() ? output_us : whole_us);
    if (ratio < kEqual && ratio > 1 / kEqual) continue;
    const double age = static_cast<double>(now_us - speed.measured_us) / kHalfLifeUs;
    slowness_[i] = std::pow(ratio, std::exp2(-age));
  }
}

}  // namespace octavo::fleet
