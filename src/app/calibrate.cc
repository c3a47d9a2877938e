// octavo simulate calibrate: measures the steps of an engine on this machine, and fits the coefficients for
// --timing of `octavo simulate` and `octavo plan`.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "app/batch_run.h"
#include "app/commands.h"
#include "app/environment.h"
#include "app/output_file.h"
#include "app/simulation_flags.h"
#include "engine/load/load.h"
#include "local/engine_flags.h"
#include "local/find_model.h"
#include "local/flag_table.h"
#include "local/progress.h"
#include "timing/fit_timing.h"

namespace octavo {
namespace {

struct CalibrateCommand {
  EngineOptions engine;
  HubFlags hub;
  int rounds = 5;
  std::string output_json;
};

// Requests of equal length.
struct Cell {
  int batch;
  int context;  // prompt tokens of a request
};

constexpr int kAnswerTokens = 16;
constexpr int kBatches[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256};
constexpr int kContexts[] = {16, 48, 128, 384, 1024, 3072, 8192, 32768};

// Returns the measurements that the engine's limits allow. Several prompts must fit into a step, so that a
// run is short.
std::vector<Cell> cells_of(const EngineOptions& options, const EngineInfo& info) {
  std::vector<Cell> out;
  const std::int64_t room = std::int64_t{info.num_blocks} * options.cache.block_size;
  for (const int batch : kBatches)
    for (const int context : kContexts) {
      const std::int64_t tokens = std::int64_t{batch} * context;
      const bool fits = batch <= options.schedule.max_num_seqs &&
                        context + kAnswerTokens <= info.max_model_len &&
                        std::int64_t{batch} * (context + kAnswerTokens + options.cache.block_size) <= room;
      if (fits && (batch == 1 || tokens <= options.schedule.max_num_batched_tokens))
        out.push_back({batch, context});
    }
  return out;
}

// Key of a step. Steps with an equal key take the same time: (tokens, prompt tokens, cached tokens / 16).
using StepKind = std::tuple<std::int64_t, int, std::int64_t>;

// Returns the median time and work of the steps of each kind.
std::vector<TimedStep> medians(const std::vector<StepRecord>& records) {
  std::map<StepKind, std::vector<TimedStep>> kinds;
  for (const StepRecord& r : records) {
    const std::int64_t tokens = r.prompt_tokens + r.answer_tokens;
    kinds[{tokens, r.prompt_tokens, r.kv_tokens / 16 / tokens}].push_back(
        {{.tokens = tokens, .kv_tokens = r.kv_tokens, .pairs = r.pairs}, r.microseconds});
  }
  std::vector<TimedStep> out;
  for (auto& [kind, steps] : kinds) {
    std::ranges::sort(steps, {}, &TimedStep::microseconds);
    out.push_back(steps[steps.size() / 2]);
  }
  return out;
}

// Returns the steps after number `last`, and updates `last`.
Result<std::vector<StepRecord>> measure(EngineClient& engine, const Cell& cell, int rounds,
                                        std::uint64_t& number, std::int64_t& last) {
  std::vector<StepRecord> out;
  for (int round = 0; round < rounds; ++round) {
    TRY_VOID(run_batch(engine, {.input_len = cell.context, .output_len = kAnswerTokens}, cell.batch, number));
    EngineStats stats = engine.stats().front();
    // Waits, because the engine reports a step a little after its output.
    while (stats.requests.unfinished > 0) {
      std::this_thread::yield();
      stats = engine.stats().front();
    }
    std::int64_t newest = last;
    for (const StepRecord& step : stats.recent_steps) {
      if (step.number <= last) continue;
      newest = std::max(newest, step.number);
      out.push_back(step);
    }
    last = newest;
  }
  return out;
}

void print_errors(const char* what, const StepTiming& timing, const std::vector<TimedStep>& steps) {
  std::vector<double> errors;
  for (const TimedStep& step : steps) errors.push_back(relative_error(timing, step));
  std::ranges::sort(errors);
  if (errors.empty()) return;
  fmt::print("{}: {} types of steps, median error {:.1f} %, p90 {:.1f} %, maximum {:.1f} %\n", what,
             errors.size(), 100 * errors[errors.size() / 2], 100 * errors[errors.size() * 9 / 10],
             100 * errors.back());
}

Result<> run_calibrate(CalibrateCommand& c) {
  TRY_VOID(find_models(c.engine, c.hub));
  // prefix caching is off, so that every step computes all its tokens
  c.engine.cache.enable_prefix_caching = false;
  TRY(const auto engine, load_engine(c.engine));
  const EngineInfo info = engine->info();
  if (info.tasks.default_task != Task::generate)
    return invalid("model",
                   "is a pooling model, but only generative models can be calibrated: give another model");
  const std::vector<Cell> cells = cells_of(c.engine, info);
  if (cells.empty())
    return invalid("max-model-len", "is too small for a prompt of {} tokens: increase it", kContexts[0]);
  std::uint64_t number = 0;
  std::int64_t last = 0;
  TRY_VOID(measure(*engine, cells.front(), 1, number, last));  // warm-up
  // Every third measurement is not used for the fit. The error of the fit on these measurements estimates its
  // error on other steps.
  std::vector<TimedStep> fitted, held_out;
  ProgressBar bar("measuring", "cells", 1);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    bar.show(i, cells.size());
    TRY(const auto records, measure(*engine, cells[i], c.rounds, number, last));
    auto& steps = i % 3 == 2 ? held_out : fitted;
    for (const TimedStep& step : medians(records)) steps.push_back(step);
  }
  bar.finish();
  const StepTiming timing = fit_timing(fitted);
  fmt::print("fixed {:.1f} us, weights {:.1f} us, token {:.3f} us, cached token {:.5f} us, pair {:.6f} us\n",
             timing.fixed_us, timing.weights_us, timing.token_us, timing.kv_token_us, timing.pair_us);
  print_errors("fitted", timing, fitted);
  print_errors("held out", timing, held_out);
  const boost::json::object result{{"fixed_us", timing.fixed_us},
                                   {"weights_us", timing.weights_us},
                                   {"token_us", timing.token_us},
                                   {"kv_token_us", timing.kv_token_us},
                                   {"pair_us", timing.pair_us}};
  return write_output("output-json", c.output_json, boost::json::serialize(result) + "\n");
}

constexpr FlagRow<CalibrateCommand> kCalibrateFlags[] = {
    {"--rounds", flag::to<&CalibrateCommand::rounds>,
     "Number of runs of each type of step; the median counts", flag::range(1, 1000)},
    {"--output-json", flag::to<&CalibrateCommand::output_json>, "File to which the coefficients are written"},
};

}  // namespace

void add_calibrate(CLI::App& simulate, Outcome& outcome) {
  CLI::App* command = simulate.add_subcommand(
      "calibrate",
      "Measure the steps of a model on this machine; simulate and plan read the result with --timing");
  auto options = std::make_shared<CalibrateCommand>();
  add_engine_flags(*command, options->engine);
  add_hub_flags(*command, options->hub, environment);
  add_flags(*command, *options, "Options", kCalibrateFlags);
  outcome.runs(*command, options, run_calibrate);
}

}  // namespace octavo
