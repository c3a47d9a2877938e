// octavo bench sweep: the highest request rate that a running server answers within an SLO.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "app/bench_load.h"
#include "app/commands.h"
#include "fleet/simulate/svg_plot.h"
#include "traffic/rate_search.h"

namespace octavo {
namespace {

namespace json = boost::json;

struct SweepCommand : LoadFlags {
  std::vector<std::string> slo;
  double share = 0.99;
  double first_rate = 1;
  double precision = 0.05;
  std::vector<double> rates;
  int seconds = 30;
  std::string output_json;
  std::string plot;
};

constexpr double kPercentiles[] = {50, 99};

struct Round {
  double rate;
  double good_share;  // share of all requests
  json::object figures;

  double figure(const char* name) const { return figures.at(name).to_number<double>(); }
};

double share_of_good(const traffic::LoadResult& run, const traffic::Goodput& slo) {
  const auto good = std::ranges::count_if(run.answers, [&](const traffic::LoadAnswer& a) {
    return a.times.completed && slo.met_by(times_of(a.times));
  });
  return static_cast<double>(good) / static_cast<double>(run.answers.size());
}

// Each round has new prompts, so that it does not profit from an earlier one's prefix cache.
Result<Round> measure_round(const SweepCommand& c, double rate, std::size_t number,
                            const traffic::Goodput& slo, const LoadTarget& target) {
  traffic::DatasetOptions dataset = c.dataset;
  dataset.seed += number;
  dataset.num_prompts = std::max(20, static_cast<int>(std::ceil(rate * c.seconds)));
  TRY(const std::vector<traffic::Prompt> prompts, load_prompts(dataset, target));
  if (number == 0) {
    TRY_VOID(try_out(prompts, 0, target));
  }
  MeasuredLoad measured =
      measure_load(prompts, {.request_rate = rate, .burstiness = c.burstiness, .seed = dataset.seed}, target,
                   slo, kPercentiles);
  return Round{rate, share_of_good(measured.run, slo), std::move(measured.figures)};
}

void print_heading() {
  fmt::print("{:>10} {:>8} {:>10} {:>12} {:>20} {:>20} {:>20}\n", "requests/s", "good", "answered/s",
             "output tok/s", "TTFT p50, p99 ms", "TPOT p50, p99 ms", "E2EL p50, p99 ms");
}

void print_round(const Round& r) {
  const auto times = [&](const char* name) {
    return fmt::format("{:.1f}, {:.1f}", r.figure(fmt::format("p50_{}_ms", name).c_str()),
                       r.figure(fmt::format("p99_{}_ms", name).c_str()));
  };
  fmt::print("{:>10.2f} {:>7.1f}% {:>10.2f} {:>12.1f} {:>20} {:>20} {:>20}\n", r.rate, r.good_share * 100,
             r.figure("request_throughput"), r.figure("output_throughput"), times("ttft"), times("tpot"),
             times("e2el"));
  std::fflush(stdout);
}

json::object as_json(const SweepCommand& c, const std::string& model, const std::vector<Round>& rounds,
                     double best) {
  json::array list;
  for (const Round& r : rounds) {
    json::object round{{"request_rate", r.rate}, {"good_share", r.good_share}};
    for (const auto& [key, value] : r.figures) round[key] = value;
    list.push_back(std::move(round));
  }
  json::array slo;
  for (const std::string& limit : c.slo) slo.emplace_back(limit);
  return {{"model_id", model},
          {"slo", std::move(slo)},
          {"share", c.share},
          {"best_request_rate", best > 0 ? json::value(best) : json::value()},
          {"rounds", std::move(list)}};
}

// Plots over the rate.
std::string plotted(const std::string& model, std::vector<Round> rounds) {
  std::ranges::sort(rounds, {}, &Round::rate);
  const auto curve = [&](const char* name, const auto& value) {
    fleet::Curve out{.name = name, .points = {}};
    for (const Round& r : rounds) out.points.emplace_back(r.rate, value(r));
    return out;
  };
  const auto times = [&](const char* title, const std::string& name) {
    return fleet::Chart{
        .title = title,
        .x_label = "requests/s",
        .y_label = "ms",
        .curves = {curve("p50", [&](const Round& r) { return r.figure(("p50_" + name + "_ms").c_str()); }),
                   curve("p99", [&](const Round& r) { return r.figure(("p99_" + name + "_ms").c_str()); })}};
  };
  const std::vector<fleet::Chart> charts{
      {.title = "Answers within the SLO",
       .x_label = "requests/s",
       .y_label = "%",
       .curves = {curve("good", [](const Round& r) { return r.good_share * 100; })}},
      {.title = "Output",
       .x_label = "requests/s",
       .y_label = "tokens/s",
       .curves = {curve("output", [](const Round& r) { return r.figure("output_throughput"); })}},
      times("Time to first token", "ttft"),
      times("Time per output token", "tpot")};
  return fleet::svg_plot(model, charts);
}

Result<> write_file(const char* flag, const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text << '\n';
  if (!file.flush()) return field_failure(flag, ErrorCode::io, "cannot write {}", path);
  return {};
}

Result<> bench_sweep(const SweepCommand& c) {
  auto slo = traffic::Goodput::parse(c.slo);
  if (!slo) {
    slo.error().field = "slo";
    return std::unexpected(slo.error());
  }
  if (!slo->limited()) return invalid("slo", "must be given: --slo ttft:500 tpot:50");
  TRY(const LoadTarget target, find_target(c));

  std::vector<Round> rounds;
  double best = 0;
  print_heading();
  const auto measure = [&](double rate) -> Result<bool> {
    TRY(Round round, measure_round(c, rate, rounds.size(), *slo, target));
    print_round(round);
    const bool good = round.good_share >= c.share;
    if (good) best = std::max(best, rate);
    rounds.push_back(std::move(round));
    return good;
  };
  if (c.rates.empty()) {
    traffic::RateSearch search(c.first_rate, c.precision);
    while (!search.done()) {
      const double rate = search.next();
      TRY(const bool good, measure(rate));
      search.add(rate, good);
    }
  }
  for (const double rate : c.rates) {
    TRY_VOID(measure(rate));
  }
  if (best > 0)
    fmt::print("best: {:.2f} requests/s with {:g} % of them within {}\n", best, c.share * 100,
               fmt::join(c.slo, " "));
  else
    fmt::print("no rate had {:g} % of its requests within {}\n", c.share * 100, fmt::join(c.slo, " "));
  if (!c.output_json.empty()) {
    TRY_VOID(write_file("output-json", c.output_json,
                        json::serialize(as_json(c, target.options.model, rounds, best))));
  }
  if (!c.plot.empty()) {
    TRY_VOID(write_file("plot", c.plot, plotted(target.options.model, rounds)));
  }
  return {};
}

}  // namespace

void add_bench_sweep(CLI::App& bench, Outcome& outcome) {
  CLI::App* sweep =
      bench.add_subcommand("sweep", "The highest request rate that a running server answers within an SLO");
  auto c = std::make_shared<SweepCommand>();
  add_load_flags(*sweep, *c);
  sweep->add_option("--slo", c->slo, "Limits of a good request in ms: ttft:500 tpot:50 e2el:5000");
  sweep->add_option("--share", c->share, "Minimum share of good requests")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  sweep->add_option("--first-rate", c->first_rate, "First request rate to try, per second")
      ->check(CLI::Range(0.001, 1e5))
      ->capture_default_str();
  sweep->add_option("--precision", c->precision, "Relative precision of the rate")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  sweep->add_option("--request-rates", c->rates, "Measure these rates instead of searching")
      ->check(CLI::Range(0.001, 1e5));
  sweep->add_option("--seconds", c->seconds, "Seconds of load at each rate, with at least 20 requests")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  sweep->add_option("--output-json", c->output_json, "File for the figures of all rates");
  sweep->add_option("--plot", c->plot, "File for the figures as a picture (SVG)");
  sweep->callback([c, &outcome] {
    if (const auto done = bench_sweep(*c); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
