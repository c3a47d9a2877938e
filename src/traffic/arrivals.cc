#include "traffic/arrivals.h"

#include <cmath>
#include <random>

#include "base/check.h"

namespace octavo::traffic {
namespace {

double rate_at(double progress, const ArrivalOptions& o) {
  switch (o.ramp_up) {
    case RampUp::none:
      return o.request_rate;
    case RampUp::linear:
      return o.ramp_up_start + (o.ramp_up_end - o.ramp_up_start) * progress;
    case RampUp::exponential:
      return o.ramp_up_start * std::pow(o.ramp_up_end / o.ramp_up_start, progress);
  }
  CHECK(false);
}

}  // namespace

std::vector<std::int64_t> arrival_times(std::size_t count, const ArrivalOptions& options) {
  std::vector<std::int64_t> times(count);
  if (options.ramp_up == RampUp::none && options.request_rate == 0) return times;
  std::mt19937_64 random(options.seed);
  std::vector<double> seconds;
  double now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double rate = rate_at(static_cast<double>(i) / static_cast<double>(count), options);
    now += std::gamma_distribution<>(options.burstiness, 1 / (rate * options.burstiness))(random);
    seconds.push_back(now);
  }
  const bool steady = options.ramp_up == RampUp::none && now > 0;
  const double scale = steady ? static_cast<double>(count) / options.request_rate / now : 1;
  for (std::size_t i = 0; i < count; ++i)
    times[i] = static_cast<std::int64_t>(std::llround(seconds[i] * scale * 1e6));
  return times;
}

}  // namespace octavo::traffic
