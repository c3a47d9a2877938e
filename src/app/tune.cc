// octavo tune: searches for the flags with which a server sustains the highest request rate within an SLO.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/environment.h"
#include "app/load_round.h"
#include "app/output_file.h"
#include "app/serving.h"
#include "app/tune_report.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "local/engine_flags.h"
#include "local/flag_table.h"
#include "traffic/knob_search.h"
#include "traffic/rate_search.h"

namespace octavo {
namespace {

using traffic::Knob;
using traffic::KnobSearch;

// A setting is better if its rate is at least this multiple of the best rate.
constexpr double kBetter = 1.03;
// The best settings of a search are measured again, because the best of many noisy measurements is often an
// outlier. At most kFinalists settings with at least kNear of the best rate are measured kFinalRounds times
// in turns.
constexpr double kNear = 0.85;
constexpr std::size_t kFinalists = 3, kFinalRounds = 3;
constexpr int kConfirmations = 3;                        // runs in a row that must meet the SLO
constexpr double kLowered = 0.95;                        // factor of the rate after a run that misses the SLO
constexpr double kCurve[] = {0.25, 0.5, 0.75, 1, 1.25};  // fractions of the best rate

struct TuneCommand {
  EngineOptions parsed;  // used only to add the flags to the parser; each trial parses them again
  HubFlags hub;
  LoadFlags load;
  std::vector<std::string> slo;
  double share = 0.99, first_rate = 1, precision = 0.05, minutes = 10;
  int seconds = 5;
  bool exhaustive = false;
  std::vector<std::string> quantizations;
  std::string config = "octavo-tuned.yaml", report, plot;
};

struct Tuned {
  Serving serving;
  LoadTarget target;
};

class Tuner {
 public:
  Tuner(const TuneCommand& command, std::vector<GivenFlag> given, const traffic::Goodput& slo,
        std::vector<Knob> knobs)
      : c_(command),
        slo_(slo),
        deadline_us_(now_us() + static_cast<std::int64_t>(command.minutes * 60e6)),
        search_(std::move(knobs)) {
    result_.model = command.parsed.model.dir;
    result_.given = std::move(given);
    result_.slo = command.slo;
    result_.share = command.share;
  }

  Result<TuneResult> run() {
    while (const auto setting = search_.next()) {
      if (now_us() > deadline_us_) {
        fmt::print("the search ends: the {:g} minutes of --minutes are over\n", c_.minutes);
        break;
      }
      const double best = search_.best_score();
      TRY(TunedTrial trial, try_flags(flags_of(*setting), best > 0 ? best * kBetter : c_.first_rate, best));
      if (trial.rate > search_.best_score()) result_.best = trial;
      search_.add(trial.rate);
      result_.trials.push_back(std::move(trial));
    }
    if (search_.best_score() == 0)
      return failure(ErrorCode::unavailable,
                     "no setting meets the SLO at any rate; error of the last setting: {}",
                     result_.trials.back().reason);
    TRY(const std::vector<TunedTrial> finals, play_off(finalists(result_.trials)));
    result_.best = finals.front();
    TRY_VOID(confirm());
    if (c_.exhaustive) TRY_VOID(compare_with_grid());
    return std::move(result_);
  }

 private:
  // Returns the best settings, best first.
  static std::vector<TunedTrial> finalists(std::vector<TunedTrial> trials) {
    std::ranges::stable_sort(trials, std::ranges::greater(), &TunedTrial::rate);
    const double least = trials.front().rate * kNear;
    std::erase_if(trials, [&](const TunedTrial& trial) { return trial.rate == 0 || trial.rate < least; });
    trials.resize(std::min(trials.size(), kFinalists));
    return trials;
  }

  // Finds the rate of each setting again, in turns, so that changes of the machine's speed affect all
  // settings. Returns the settings with their median rates, best first.
  Result<std::vector<TunedTrial>> play_off(std::vector<TunedTrial> settings) {
    if (settings.size() < 2) return settings;
    fmt::print("the best {} settings are measured again, {} times in turns\n", settings.size(), kFinalRounds);
    std::vector<std::vector<double>> rates(settings.size());
    for (std::size_t round = 0; round < kFinalRounds; ++round)
      for (std::size_t i = 0; i < settings.size(); ++i) {
        TRY(const TunedTrial again, try_flags(settings[i].flags, settings[i].rate, 0));
        rates[i].push_back(again.rate);
      }
    for (std::size_t i = 0; i < settings.size(); ++i) {
      std::ranges::sort(rates[i]);
      settings[i].rate = rates[i][kFinalRounds / 2];
    }
    std::ranges::stable_sort(settings, std::ranges::greater(), &TunedTrial::rate);
    if (settings.front().rate > 0) return settings;
    return failure(ErrorCode::unavailable,
                   "no setting meets the SLO again: the machine's speed varies too "
                   "much; raise --seconds or lower --share");
  }

  // Measures every setting of the grid. Then measures the best ones and the tuned setting in turns.
  Result<> compare_with_grid() {
    for (const KnobSearch::Setting& setting : search_.grid()) {
      TRY(TunedTrial trial, try_flags(flags_of(setting), c_.first_rate, 0));
      result_.grid.push_back(std::move(trial));
    }
    std::vector<TunedTrial> rivals = finalists(result_.grid);
    const std::string tuned = flags_text(result_.best.flags);
    std::erase_if(rivals, [&](const TunedTrial& rival) { return flags_text(rival.flags) == tuned; });
    rivals.insert(rivals.begin(), result_.best);
    TRY(result_.finals, play_off(std::move(rivals)));
    return {};
  }

  std::vector<GivenFlag> flags_of(const KnobSearch::Setting& setting) const {
    std::vector<GivenFlag> flags;
    for (std::size_t k = 0; k < setting.size(); ++k)
      flags.push_back({search_.knobs()[k].flag, search_.knobs()[k].values[setting[k]]});
    return flags;
  }

  Result<Tuned> start(const std::vector<GivenFlag>& flags) const {
    CLI::App app;
    ServeCommand command;
    add_serve_flags(app, command);
    std::vector<std::string> words{"--host=127.0.0.1", "--port=0", "--no-engine-process",
                                   "--disable-log-stats"};
    if (!result_.model.empty()) words.push_back("--model=" + result_.model);
    for (const auto* some : {&result_.given, &flags})
      for (const GivenFlag& flag : *some)
        if (!flag.value.empty()) words.push_back(flag.flag + "=" + flag.value);
    try {
      app.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      return invalid("", "{}", error.what());
    }
    TRY(Serving serving, start_serving(command));
    LoadFlags load = c_.load;
    load.port = serving.server->port();
    TRY(LoadTarget target, find_target(load));
    return Tuned{std::move(serving), std::move(target)};
  }

  Result<LoadRound> measure(const Tuned& tuned, double rate) {
    TRY(LoadRound round, measure_round(c_.load, {.rate = rate, .seconds = c_.seconds, .number = rounds_++},
                                       slo_, tuned.target));
    return round;
  }

  std::string reason_of(const LoadRound& r) const {
    return fmt::format("at {:.2f} requests/s {:.1f} % good, p99 TTFT {:.0f} ms, TPOT {:.1f} ms", r.rate,
                       r.good_share * 100, r.figure("p99_ttft_ms"), r.figure("p99_tpot_ms"));
  }

  // Finds the highest rate of a setting, starting at the rate `first`. Stops after one run if `best` is not 0
  // and the setting is not better.
  Result<TunedTrial> try_flags(std::vector<GivenFlag> flags, double first, double best) {
    TunedTrial trial{.flags = std::move(flags), .rate = 0, .reason = {}};
    auto tuned = start(trial.flags);
    if (!tuned) {
      // The first trial has no tuned flags. If its server does not start, tuning fails.
      if (result_.trials.empty()) return std::unexpected(tuned.error());
      trial.reason = fmt::format("does not start: {} {}", tuned.error().field, tuned.error().message);
    } else {
      traffic::RateSearch rates(first, c_.precision);
      while (!rates.done()) {
        TRY(const LoadRound round, measure(*tuned, rates.next()));
        const bool good = round.good_share >= c_.share;
        if (good || trial.rate == 0) trial.reason = reason_of(round);
        rates.add(round.rate, good);
        trial.rate = rates.best();
        if (trial.rate == 0 && best > 0) break;
      }
    }
    fmt::print("{:>8} {}: {}\n", trial.rate > 0 ? fmt::format("{:.2f}", trial.rate) : "-",
               flags_text(trial.flags), trial.reason);
    std::fflush(stdout);
    return trial;
  }

  // Lowers the rate until kConfirmations runs in a row meet the SLO, and then measures the curve.
  Result<> confirm() {
    TRY(const Tuned tuned, start(result_.best.flags));
    double rate = result_.best.rate;
    while (result_.confirmed.size() < kConfirmations) {
      TRY(LoadRound round, measure(tuned, rate));
      const bool good = round.good_share >= c_.share;
      fmt::print("the best setting {}: {}\n", good ? "holds" : "does not hold", reason_of(round));
      if (good) {
        result_.confirmed.push_back(std::move(round));
        continue;
      }
      result_.confirmed.clear();
      rate *= kLowered;
      if (rate < c_.first_rate / 16)
        return failure(ErrorCode::unavailable, "no rate of the best setting met the SLO {} times in a row",
                       kConfirmations);
    }
    result_.best.rate = rate;
    for (const double share : kCurve) {
      TRY(result_.curve.emplace_back(), measure(tuned, rate * share));
    }
    return {};
  }

  const TuneCommand& c_;
  const traffic::Goodput slo_;
  const std::int64_t deadline_us_;
  KnobSearch search_;
  TuneResult result_;
  std::size_t rounds_ = 0;
};

std::vector<Knob> all_knobs(const TuneCommand& c) {
  std::vector<Knob> knobs{{.flag = "--max-num-seqs",
                           .values = {"8", "16", "32", "64", "128", "256", "512"},
                           .usual = 4,
                           .ordered = true,
                           .coarse = {1, 3, 5}},
                          {.flag = "--max-num-batched-tokens",
                           .values = {"256", "512", "1024", "2048", "4096", "8192"},
                           .usual = 3,
                           .ordered = true,
                           .coarse = {1, 3, 5}},
                          {.flag = "--block-size", .values = {"16", "32", "64"}, .ordered = true}};
  // A simulated executor has no draft tokens, compute threads or weights, so flags for these are not tuned.
  if (c.parsed.device.executor != "local") return knobs;
  knobs.push_back(
      {.flag = "--speculative-config",
       .values = {
           "", R"({"method": "suffix"})",
           R"({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2})"}});
  Knob threads{.flag = "--cpu-threads", .values = {""}, .usual = 0, .ordered = true};
  for (int n = usable_processors() / 2; n >= 1 && threads.values.size() < 4; n /= 2)
    threads.values.push_back(std::to_string(n));
  if (c.parsed.device.type != "cuda" && threads.values.size() > 1) knobs.push_back(std::move(threads));
  if (!c.quantizations.empty()) {
    Knob weights{.flag = "--quantization", .values = {""}};
    weights.values.insert(weights.values.end(), c.quantizations.begin(), c.quantizations.end());
    knobs.push_back(std::move(weights));
  }
  return knobs;
}

Result<> tune(TuneCommand& c, const CLI::App& command) {
  set_log_level(LogLevel::warning);
  TRY(const traffic::Goodput slo, traffic::Goodput::parse(c.slo, "slo"));
  if (!slo.limited()) return invalid("slo", "must be given, for example --slo ttft:500 tpot:50");
  std::vector<GivenFlag> given = given_engine_flags(command);
  if (c.parsed.parallel.rank_layout().size() * c.parsed.parallel.data_parallel_size > 1)
    return field_failure("tensor_parallel_size", ErrorCode::unsupported,
                         "octavo tune can measure only an engine in one process: remove the parallel sizes");
  std::vector<Knob> knobs = all_knobs(c);
  std::erase_if(knobs, [&](const Knob& knob) {
    return std::ranges::find(given, knob.flag, &GivenFlag::flag) != given.end();
  });
  c.load.host = "127.0.0.1";
  c.load.ignore_eos = c.load.dataset.name == "random";
  TRY(const TuneResult result, Tuner(c, std::move(given), slo, std::move(knobs)).run());
  const std::string report = tune_report(result);
  fmt::print("\n{}", report);
  TRY_VOID(write_output("config", c.config, tuned_config(result)));
  TRY_VOID(write_output("report", c.report, report));
  TRY_VOID(write_output("plot", c.plot, c.plot.empty() ? "" : plot_rounds(result.model, result.curve)));
  fmt::print("\noctavo serve --config {}\n", c.config);
  return {};
}

using TuneFlag = FlagRow<TuneCommand>;
using traffic::DatasetOptions;

traffic::DatasetOptions& dataset_of(TuneCommand& c) { return c.load.dataset; }

constexpr TuneFlag kTuneFlags[] = {
    {"--slo", flag::to<&TuneCommand::slo>,
     "Maximum times of a good request in milliseconds: ttft:500 tpot:50 e2el:5000"},
    {"--share", flag::to<&TuneCommand::share>, "Minimum fraction of requests within the SLO",
     flag::range(0.01, 1.0)},
    {"--minutes", flag::to<&TuneCommand::minutes>,
     "Minutes for the search; after this time no new setting is tried", flag::range(0.1, 1440.0)},
    {"--seconds", flag::to<&TuneCommand::seconds>,
     "Seconds of load at each rate; at least 20 requests are sent", flag::range(1, 3600)},
    {"--first-rate", flag::to<&TuneCommand::first_rate>,
     "Request rate to try first with the first setting, in requests per second", flag::range(0.001, 1e5)},
    {"--precision", flag::to<&TuneCommand::precision>, "Precision of the result as a fraction of the rate",
     flag::range(0.01, 1.0)},
    {"--exhaustive", flag::to<&TuneCommand::exhaustive>,
     "Find the highest rate of every setting of the grid after the search, and compare the best ones with "
     "the tuned setting"},
    {"--quantizations", flag::to<&TuneCommand::quantizations>,
     "Quantisations to try, int8 or int4, in addition to the model's own format. They change answers"},
    {"--config-file", flag::to<&TuneCommand::config>,
     "File for the best setting, which octavo serve reads with --config"},
    {"--report", flag::to<&TuneCommand::report>, "File for a report (Markdown)"},
    {"--plot", flag::to<&TuneCommand::plot>, "File for a chart of throughput and latency (SVG)"},
    {"--dataset-name", flag::to<dataset_of, &DatasetOptions::name>, "Data set of the prompts",
     OneOf{"random|sharegpt|custom"}},
    {"--dataset-path", flag::to<dataset_of, &DatasetOptions::path>,
     "File with the data set sharegpt (JSON) or custom (JSON lines with the field \"prompt\")"},
    {"--input-len", flag::to<dataset_of, &DatasetOptions::random_input_len>,
     "For random: number of prompt tokens", flag::range(1, 1 << 24)},
    {"--output-len", flag::to<dataset_of, &DatasetOptions::random_output_len>,
     "For random: number of output tokens", flag::range(1, 1 << 24)},
    {"--range-ratio", flag::to<dataset_of, &DatasetOptions::random_range_ratio>,
     "For random: maximum relative deviation of the prompt and output lengths", flag::range(0.0, 0.999)},
    {"--burstiness", flag::to<&TuneCommand::load, &LoadFlags::burstiness>,
     "Shape of the gamma distribution of arrivals. 1: Poisson arrivals; below 1: more bursts; above 1: more "
     "even",
     flag::range(0.001, 1e6)},
};

}  // namespace

void add_tune(CLI::App& program, Outcome& outcome) {
  CLI::App* command =
      program.add_subcommand("tune", "Find the engine's flags with the highest request rate within an SLO");
  auto c = std::make_shared<TuneCommand>();
  add_engine_flags(*command, c->parsed);
  add_hub_flags(*command, c->hub, environment);
  add_flags(*command, *c, "Tuning", kTuneFlags);
  outcome.runs(*command, c, [command](TuneCommand& options) { return tune(options, *command); });
}

}  // namespace octavo
