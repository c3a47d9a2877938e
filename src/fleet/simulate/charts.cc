#include "fleet/simulate/charts.h"

#include <algorithm>

namespace octavo::fleet {
namespace {

using Points = std::vector<std::pair<double, double>>;

Points ttft_shares(const SimulationResult& result) {
  std::vector<double> seconds;
  for (const traffic::AnswerTimes& answer : result.answers)
    if (answer.completed) seconds.push_back(traffic::times_of(answer).ttft * 1e-3);
  std::ranges::sort(seconds);
  Points points;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    points.emplace_back(seconds[i], static_cast<double>(i + 1) / static_cast<double>(seconds.size()));
  return points;
}

Points gap_shares(const SimulationResult& result) {
  Points points;
  double count = 0;
  result.gaps.each([&](std::int64_t gap_us, std::uint64_t more) {
    points.emplace_back(static_cast<double>(gap_us) * 1e-3, count += static_cast<double>(more));
  });
  for (auto& point : points) point.second /= count;
  return points;
}

template <class Value>
Points over_time(const SimulationResult& result, Value value) {
  Points points;
  for (const FleetSample& sample : result.samples) {
    const double minutes = static_cast<double>(sample.time_us - result.samples.front().time_us) / 60e6;
    points.emplace_back(minutes, value(sample));
  }
  return points;
}

double unfinished(const FleetSample& sample) { return sample.running + sample.waiting; }

double cached_share(const FleetSample& sample) {
  return sample.prompt_tokens == 0
             ? 0
             : static_cast<double>(sample.cached_tokens) / static_cast<double>(sample.prompt_tokens);
}

}  // namespace

std::vector<Chart> charts(std::span<const NamedResult> results) {
  std::vector<Chart> all{{"Time to first token", "seconds", "share of requests", true, {}},
                         {"Inter-token latency", "milliseconds", "share of tokens", true, {}},
                         {"Unfinished requests", "minutes", "requests", false, {}},
                         {"Prompt tokens found in caches", "minutes", "share so far", false, {}}};
  for (const auto& [name, result] : results) {
    all[0].curves.push_back({name, ttft_shares(result)});
    all[1].curves.push_back({name, gap_shares(result)});
    all[2].curves.push_back({name, over_time(result, unfinished)});
    all[3].curves.push_back({name, over_time(result, cached_share)});
  }
  return all;
}

}  // namespace octavo::fleet
