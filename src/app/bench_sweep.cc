// octavo bench sweep: finds the highest request rate at which a running server meets an SLO.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/load_round.h"
#include "app/output_file.h"
#include "local/flag_table.h"
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

json::object as_json(const SweepCommand& c, const std::string& model, const std::vector<LoadRound>& rounds,
                     double best) {
  json::array list;
  for (const LoadRound& r : rounds) {
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

Result<> bench_sweep(const SweepCommand& c) {
  TRY(const traffic::Goodput slo, traffic::Goodput::parse(c.slo, "slo"));
  if (!slo.limited()) return invalid("slo", "must be given, for example --slo ttft:500 tpot:50");
  TRY(const LoadTarget target, find_target(c));

  std::vector<LoadRound> rounds;
  double best = 0;
  fmt::print("{}", round_heading());
  const auto measure = [&](double rate) -> Result<bool> {
    TRY(LoadRound round,
        measure_round(c, {.rate = rate, .seconds = c.seconds, .number = rounds.size()}, slo, target));
    fmt::print("{}", round_row(round));
    std::fflush(stdout);
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
    fmt::print("at no rate were {:g} % of the requests within {}\n", c.share * 100, fmt::join(c.slo, " "));
  TRY_VOID(write_output("output-json", c.output_json,
                        json::serialize(as_json(c, target.options.model, rounds, best)) + "\n"));
  return write_output("plot", c.plot, c.plot.empty() ? "" : plot_rounds(target.options.model, rounds));
}

using SweepFlag = FlagRow<SweepCommand>;

constexpr SweepFlag kSweepFlags[] = {
    {"--slo", flag::to<&SweepCommand::slo>,
     "Maximum times of a good request in milliseconds: ttft:500 tpot:50 e2el:5000"},
    {"--share", flag::to<&SweepCommand::share>, "Minimum fraction of requests within the SLO",
     flag::range(0.01, 1.0)},
    {"--first-rate", flag::to<&SweepCommand::first_rate>, "First request rate to try, in requests per second",
     flag::range(0.001, 1e5)},
    {"--precision", flag::to<&SweepCommand::precision>,
     "Precision of the result as a fraction of the rate; the search ends at this precision",
     flag::range(0.01, 1.0)},
    {"--request-rates", flag::to<&SweepCommand::rates>, "Request rates to measure, instead of a search",
     flag::range(0.001, 1e5)},
    {"--seconds", flag::to<&SweepCommand::seconds>,
     "Seconds of load at each rate; at least 20 requests are sent", flag::range(1, 86'400)},
    {"--output-json", flag::to<&SweepCommand::output_json>,
     "File to which the figures of all rates are written as JSON"},
    {"--plot", flag::to<&SweepCommand::plot>, "File for a chart of all rates (SVG)"},
};

}  // namespace

void add_bench_sweep(CLI::App& bench, Outcome& outcome) {
  CLI::App* sweep = bench.add_subcommand(
      "sweep", "Find the highest request rate that a running server can serve within an SLO");
  auto c = std::make_shared<SweepCommand>();
  add_load_flags(*sweep, *c);
  add_flags(*sweep, *c, "Options", kSweepFlags);
  outcome.runs(*sweep, c, bench_sweep);
}

}  // namespace octavo
