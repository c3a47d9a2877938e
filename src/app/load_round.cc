#include "app/load_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleet/simulate/svg_plot.h"

namespace octavo {
namespace {

constexpr double kPercentiles[] = {50, 99};

double share_of_good(const traffic::LoadResult& run, const traffic::Goodput& slo) {
  const auto good = std::ranges::count_if(run.answers, [&](const traffic::LoadAnswer& a) {
    return a.times.completed && slo.met_by(times_of(a.times));
  });
  return static_cast<double>(good) / static_cast<double>(run.answers.size());
}

}  // namespace

Result<LoadRound> measure_round(const LoadFlags& flags, const RoundPlan& plan, const traffic::Goodput& slo,
                                const LoadTarget& target) {
  traffic::DatasetOptions dataset = flags.dataset;
  dataset.seed += plan.number;
  dataset.num_prompts = std::max(20, static_cast<int>(std::ceil(plan.rate * plan.seconds)));
  TRY(const std::vector<traffic::Prompt> prompts, load_prompts(dataset, target));
  if (plan.number == 0) {
    TRY_VOID(try_out(prompts, 0, target));
  }
  MeasuredLoad measured = measure_load(
      prompts,
      traffic::arrival_times(
          prompts.size(), {.request_rate = plan.rate, .burstiness = flags.burstiness, .seed = dataset.seed}),
      target, slo, kPercentiles);
  return LoadRound{plan.rate, share_of_good(measured.run, slo), std::move(measured.figures)};
}

std::string round_heading() {
  return fmt::format("{:>10} {:>8} {:>10} {:>12} {:>20} {:>20} {:>20}\n", "requests/s", "good", "answered/s",
                     "output tok/s", "TTFT p50, p99 ms", "TPOT p50, p99 ms", "E2EL p50, p99 ms");
}

std::string round_row(const LoadRound& r) {
  const auto times = [&](const char* name) {
    return fmt::format("{:.1f}, {:.1f}", r.figure(fmt::format("p50_{}_ms", name).c_str()),
                       r.figure(fmt::format("p99_{}_ms", name).c_str()));
  };
  return fmt::format("{:>10.2f} {:>7.1f}% {:>10.2f} {:>12.1f} {:>20} {:>20} {:>20}\n", r.rate,
                     r.good_share * 100, r.figure("request_throughput"), r.figure("output_throughput"),
                     times("ttft"), times("tpot"), times("e2el"));
}

std::string plot_rounds(const std::string& title, std::vector<LoadRound> rounds) {
  std::ranges::sort(rounds, {}, &LoadRound::rate);
  const auto curve = [&](const char* name, const auto& value) {
    fleet::Curve out{.name = name, .points = {}};
    for (const LoadRound& r : rounds) out.points.emplace_back(r.rate, value(r));
    return out;
  };
  const auto times = [&](const char* name_of_times, const std::string& name) {
    return fleet::Chart{
        .title = name_of_times,
        .x_label = "requests/s",
        .y_label = "ms",
        .curves = {
            curve("p50", [&](const LoadRound& r) { return r.figure(("p50_" + name + "_ms").c_str()); }),
            curve("p99", [&](const LoadRound& r) { return r.figure(("p99_" + name + "_ms").c_str()); })}};
  };
  const std::vector<fleet::Chart> charts{
      {.title = "Answers within the SLO",
       .x_label = "requests/s",
       .y_label = "%",
       .curves = {curve("good", [](const LoadRound& r) { return r.good_share * 100; })}},
      {.title = "Output",
       .x_label = "requests/s",
       .y_label = "tokens/s",
       .curves = {curve("output", [](const LoadRound& r) { return r.figure("output_throughput"); })}},
      times("Time to first token", "ttft"),
      times("Time per output token", "tpot")};
  return fleet::svg_plot(title, charts);
}

}  // namespace octavo
