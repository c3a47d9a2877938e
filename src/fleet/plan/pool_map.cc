#include "fleet/plan/pool_map.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>

#include "base/check.h"
#include "fleet/simulate/svg_map.h"
#include "fleet/simulate/traffic_shape.h"

namespace octavo::fleet {
namespace {

constexpr int kBlockTokens = 64;
// The search ends at this ratio between a rate that misses the SLO and a rate that meets it.
constexpr double kNearEnough = 1.03;
constexpr double kRateMin = 1e-3, kRateMax = 1e5;
constexpr double kRequestsMin = 20;  // a simulation has at least this number of requests

class Kind {
 public:
  Kind(int prompt_tokens, int answer_tokens, const Slo& slo, const PoolMapRules& rules, std::uint64_t seed)
      : slo_(slo), rules_(rules), seed_(seed) {
    shape_.input_tokens = prompt_tokens;
    shape_.output_tokens = answer_tokens;
    shape_.spread = 0.2;
  }

  Result<bool> serves(const SimulationOptions& options, double rate) {
    shape_.session_rate = rate;
    shape_.seconds = std::max(rules_.seconds, kRequestsMin / rate);
    TRY(const Trace trace, generate_traffic(shape_, kBlockTokens, seed_));
    TRY(const Trial trial, try_fleet(options, trace, slo_, [](int, std::size_t, std::size_t) {}));
    return trial.meets_slo;
  }

  // Returns the highest rate that meets the SLO, or 0 if no rate does. `floor` is a rate that is known to
  // meet the SLO, or 0.
  Result<double> highest_rate(const SimulationOptions& options, double floor) {
    double served = floor, refused = 0;
    for (double rate = std::max(floor * 2, 1.0); refused == 0 && rate < kRateMax; rate *= 2) {
      TRY(const bool good, serves(options, rate));
      (good ? served : refused) = rate;
    }
    for (double rate = refused / 2; served == 0 && rate > kRateMin; rate /= 2) {
      TRY(const bool good, serves(options, rate));
      (good ? served : refused) = rate;
    }
    while (served > 0 && refused / served > kNearEnough) {
      const double rate = std::sqrt(served * refused);
      TRY(const bool good, serves(options, rate));
      (good ? served : refused) = rate;
    }
    return served;
  }

 private:
  const Slo& slo_;
  const PoolMapRules& rules_;
  const std::uint64_t seed_;
  TrafficShape shape_;
};

Result<PoolCell> fill(PoolCell cell, SimulationOptions options, const Slo& slo, const PoolMapRules& rules) {
  Kind kind(cell.prompt_tokens, cell.answer_tokens, slo, rules, options.seed);
  options.replicas = rules.replicas;
  options.prefill.replicas = 0;
  TRY(cell.together, kind.highest_rate(options, 0));
  for (int prefill = 1; prefill < rules.replicas; ++prefill) {
    options.replicas = rules.replicas - prefill;
    options.prefill.replicas = prefill;
    // One simulation shows whether the split is better than the best split so far. Most splits are not.
    const double better = cell.apart * kNearEnough;
    if (cell.apart > 0) {
      TRY(const bool good, kind.serves(options, better));
      if (!good) continue;
    }
    TRY(const double rate, kind.highest_rate(options, better));
    if (rate > cell.apart) {
      cell.apart = rate;
      cell.prefill_replicas = prefill;
    }
  }
  return cell;
}

}  // namespace

Result<std::vector<PoolCell>> map_pools(SimulationOptions options, const Slo& slo, const PoolMapRules& rules,
                                        const std::function<void(std::size_t, std::size_t)>& progress) {
  CHECK(rules.replicas >= 2);
  std::vector<PoolCell> cells;
  const std::size_t all = rules.prompt_tokens.size() * rules.answer_tokens.size();
  for (const int answer : rules.answer_tokens)
    for (const int prompt : rules.prompt_tokens) {
      progress(cells.size(), all);
      TRY(cells.emplace_back(),
          fill({.prompt_tokens = prompt, .answer_tokens = answer}, options, slo, rules));
    }
  return cells;
}

std::string pool_map_text(const std::vector<PoolCell>& cells) {
  std::string text = fmt::format("{:>10}{:>10}{:>14}{:>12}{:>18}{:>8}\n", "prompt", "answer", "together/s",
                                 "apart/s", "prefill replicas", "gain");
  for (const PoolCell& cell : cells)
    text += fmt::format("{:>10}{:>10}{:>14.2f}{:>12.2f}{:>18}{:>8.2f}\n", cell.prompt_tokens,
                        cell.answer_tokens, cell.together, cell.apart, cell.prefill_replicas, cell.gain());
  return text;
}

boost::json::object pool_map_json(const std::vector<PoolCell>& cells, const PoolMapRules& rules) {
  boost::json::array out;
  for (const PoolCell& cell : cells)
    out.push_back({{"prompt_tokens", cell.prompt_tokens},
                   {"answer_tokens", cell.answer_tokens},
                   {"together_request_rate", cell.together},
                   {"apart_request_rate", cell.apart},
                   {"prefill_replicas", cell.prefill_replicas},
                   {"gain", cell.gain()}});
  return {{"replicas", rules.replicas}, {"cells", std::move(out)}};
}

std::string pool_map_svg(const std::string& title, const std::vector<PoolCell>& cells,
                         const PoolMapRules& rules) {
  ColourMap map{
      .title = title, .x_label = "prompt tokens", .y_label = "answer tokens", .x = {}, .y = {}, .cells = {}};
  for (const int tokens : rules.prompt_tokens) map.x.push_back(std::to_string(tokens));
  for (const int tokens : rules.answer_tokens) map.y.push_back(std::to_string(tokens));
  for (const PoolCell& cell : cells) {
    ColourMap::Cell one{.factor = cell.gain(), .lines = {"no rate meets the SLO"}};
    if (cell.together > 0)
      one.lines = {fmt::format("x {:.2f}", cell.gain()),
                   fmt::format("{:.3g}/s, {:.3g}/s", cell.together, cell.apart),
                   fmt::format("{} : {}", cell.prefill_replicas, rules.replicas - cell.prefill_replicas)};
    else if (cell.apart > 0)
      one = {.factor = 2, .lines = {"only apart", fmt::format("{:.3g}/s", cell.apart)}};
    map.cells.push_back(std::move(one));
  }
  return svg_map(map);
}

}  // namespace octavo::fleet
