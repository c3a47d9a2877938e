// octavo bench latency | throughput | step: measures the engine without HTTP. `latency` and `throughput`
// write vLLM's JSON fields.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/batch_run.h"
#include "app/commands.h"
#include "app/environment.h"
#include "app/given_flags.h"
#include "app/output_file.h"
#include "base/clock.h"
#include "base/percentile.h"
#include "bench/machine_limits.h"
#include "bench/timed_backend.h"
#include "engine/load/load.h"
#include "local/engine_flags.h"
#include "local/flag_table.h"
#include "local/progress.h"
#include "local/runtime.h"
#include "traffic/dataset.h"

namespace octavo {
namespace {

using boost::json::object;
using boost::json::serialize;

struct BenchCommand {
  RuntimeOptions runtime;
  BatchShape shape{.input_len = 32, .output_len = 128};
  int batch_size = 8;
  std::vector<int> batch_sizes{8};  // for `step`
  int warmup_iterations = 10;
  int iterations = 30;
  traffic::DatasetOptions dataset;  // for `throughput`
  std::optional<int> output_len;    // nullopt: length of the answers in the data set
  int rounds = 5;
  std::string output_json;
};

// Adds figures of speculative decoding to the result (they include the warm-up), and prints them.
void report_drafts(const EngineClient& engine, object& result) {
  std::int64_t drafts = 0, tokens = 0, accepted = 0;
  for (const EngineStats& stats : engine.stats()) {
    drafts += stats.drafts.drafts;
    tokens += stats.drafts.tokens;
    accepted = std::accumulate(stats.drafts.accepted.begin(), stats.drafts.accepted.end(), accepted);
  }
  if (drafts == 0) return;
  const double length = 1 + static_cast<double>(accepted) / static_cast<double>(drafts);
  const double rate = static_cast<double>(accepted) / static_cast<double>(tokens);
  fmt::print(
      "Speculative decoding: {} drafts, {} draft tokens, {} accepted ({:.1f}%), mean acceptance length "
      "{:.2f}\n",
      drafts, tokens, accepted, 100 * rate, length);
  result["spec_decode"] = {{"num_drafts", drafts},
                           {"num_draft_tokens", tokens},
                           {"num_accepted_tokens", accepted},
                           {"acceptance_rate", rate},
                           {"mean_acceptance_length", length}};
}

double percentile_of(const std::vector<double>& sorted, double percent) {
  return percentile(sorted.size(), percent, [&](std::size_t i) { return sorted[i]; });
}

Result<> bench_latency(BenchCommand& c) {
  TRY(const auto runtime, start_runtime(std::move(c.runtime)));
  EngineClient& engine = *runtime->engine;
  std::uint64_t number = 0;
  std::vector<double> latencies;
  ProgressBar bar("measuring", "batches", 1);
  const int batches = c.warmup_iterations + c.iterations;
  for (int i = 0; i < batches; ++i) {
    TRY(const double seconds, run_batch(engine, c.shape, c.batch_size, number));
    if (i >= c.warmup_iterations) latencies.push_back(seconds);
    bar.show(static_cast<std::size_t>(i) + 1, static_cast<std::size_t>(batches));
  }
  bar.finish();
  std::vector<double> sorted = latencies;
  std::ranges::sort(sorted);
  const double average =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  object percentiles;
  fmt::print("Avg latency: {:.4f} seconds\n", average);
  for (const int percent : {10, 25, 50, 75, 90, 99}) {
    const double value = percentile_of(sorted, percent);
    fmt::print("{}% percentile latency: {:.4f} seconds\n", percent, value);
    percentiles[std::to_string(percent)] = value;
  }
  object result{{"avg_latency", average},
                {"latencies", boost::json::array(latencies.begin(), latencies.end())},
                {"percentiles", percentiles}};
  report_drafts(engine, result);
  return write_output("output-json", c.output_json, serialize(result) + "\n");
}

Result<std::vector<BatchRequest>> dataset_requests(const BenchCommand& c, const Tokenizer& tokenizer) {
  traffic::DatasetOptions options = c.dataset;
  options.random_input_len = c.shape.input_len;
  options.random_output_len = c.shape.output_len;
  if (c.output_len)
    options.sharegpt_output_len = options.custom_output_len = options.sonnet_output_len =
        options.prefix_output_len = *c.output_len;
  TRY(std::vector<traffic::Prompt> prompts, load_dataset(options, tokenizer));
  std::vector<BatchRequest> requests;
  for (traffic::Prompt& prompt : prompts) {
    if (prompt.ids.empty()) {
      TRY(prompt.ids, tokenizer.encode(prompt.text, true));
    }
    requests.push_back({std::move(prompt.ids), prompt.output_tokens});
  }
  return requests;
}

Result<> bench_throughput(BenchCommand& c) {
  TRY(const auto runtime, start_runtime(std::move(c.runtime)));
  std::uint64_t number = 0;
  EngineClient& engine = *runtime->engine;
  TRY(std::vector<BatchRequest> requests, dataset_requests(c, *runtime->tokenizer));
  const auto count = static_cast<std::int64_t>(requests.size());
  std::int64_t output_tokens = 0, tokens = 0;
  for (const BatchRequest& request : requests) {
    output_tokens += request.output_len;
    tokens += static_cast<std::int64_t>(request.prompt.size()) + request.output_len;
  }
  TRY_VOID(run_batch(engine, c.shape, std::min(c.dataset.num_prompts, 4), number));  // warm-up
  ProgressBar bar("measuring", "requests", 1);
  TRY(const double seconds, run_requests(engine, std::move(requests), c.shape.temperature, [] {}, &bar));
  bar.finish();
  const double rate = static_cast<double>(count) / seconds;
  fmt::print("Throughput: {:.2f} requests/s, {:.2f} total tokens/s, {:.2f} output tokens/s\n", rate,
             static_cast<double>(tokens) / seconds, static_cast<double>(output_tokens) / seconds);
  object result{{"elapsed_time", seconds},
                {"num_requests", count},
                {"total_num_tokens", tokens},
                {"requests_per_second", rate},
                {"tokens_per_second", static_cast<double>(tokens) / seconds}};
  report_drafts(engine, result);
  return write_output("output-json", c.output_json, serialize(result) + "\n");
}

struct DecodeTimes {
  double seconds = 0;
  std::array<double, kOpNames.size()> in_operators{};  // seconds
  double steps = 0;
};

// Runs a batch. Times count from the first token of the last request.
Result<DecodeTimes> run_decoding(EngineClient& engine, const BatchShape& shape, int batch_size,
                                 std::uint64_t& number, OpTimes& times) {
  std::int64_t began = 0;
  TRY_VOID(run_batch(engine, shape, batch_size, number, [&] {
    for (std::size_t i = 0; i < kOpNames.size(); ++i) times.nanoseconds[i] = times.calls[i] = 0;
    began = now_us();
  }));
  constexpr auto embed = static_cast<std::size_t>(std::ranges::find(kOpNames, "embed") - kOpNames.begin());
  static_assert(embed < kOpNames.size());
  DecodeTimes spent{.seconds = static_cast<double>(now_us() - began) * 1e-6,
                    // number of steps, because a step calls the embedding once
                    .steps = static_cast<double>(times.calls[embed])};
  for (std::size_t i = 0; i < kOpNames.size(); ++i)
    spent.in_operators[i] = static_cast<double>(times.nanoseconds[i]) * 1e-9;
  return spent;
}

// Prints what part of the steps' time each operator takes.
void print_parts(const DecodeTimes& all, object& result) {
  constexpr std::string_view kRow = "{:<16} {:>12.1f} {:>8.2f}%\n";
  object parts;
  double rest = all.seconds;
  const auto print = [&](std::string_view part, double spent) {
    fmt::print(kRow, part, spent * 1e6 / all.steps, 100 * spent / all.seconds);
    parts[part] = spent;
  };
  fmt::print("{:<16} {:>12} {:>9}\n", "part", "us per step", "share");
  for (std::size_t i = 0; i < kOpNames.size(); ++i) {
    rest -= all.in_operators[i];
    print(kOpNames[i], all.in_operators[i]);
  }
  print("everything else", rest);
  result["parts"] = std::move(parts);
}

// Measures decode steps of one batch size. Compares them with the time to read all weights and cached keys
// and values (those of a common prefix once) at the measured bandwidth. On a CPU, also reports the time of
// each operator. On a GPU, CUDA graphs call no operators, so the bytes of weights are counted in the warm-up.
Result<object> measure_steps(EngineClient& engine, const BenchCommand& c, int batch_size,
                             MachineLimits& limits, bool on_host, OpTimes& times) {
  const EngineInfo info = engine.info();
  const std::int64_t held = std::int64_t{info.num_blocks} * c.runtime.engine.cache.block_size;
  const std::int64_t needed =
      std::int64_t{batch_size} * (c.shape.input_len + c.shape.output_len) + c.shape.prefix_len;
  // If the cache were too small for all requests, some would wait, and steps would be too small.
  if (needed > held)
    return invalid("batch-size",
                   "at the end, {} sequences have {} tokens, but the KV cache holds only {}: lower "
                   "--batch-size, --input-len or --output-len",
                   batch_size, needed, held);
  std::uint64_t number = 0;
  TRY_VOID(run_decoding(engine, c.shape, batch_size, number, times));  // warm-up
  // Cached bytes of a step: on average, half of the output is cached. Ignores sliding windows, which cache
  // less.
  const double cached_bytes =
      static_cast<double>(info.cache.bytes) / info.num_blocks / c.runtime.engine.cache.block_size *
      ((c.shape.input_len + c.shape.output_len / 2.0) * batch_size + c.shape.prefix_len);
  const double bytes_per_step = static_cast<double>(times.weight_bytes) + cached_bytes;
  DecodeTimes all;
  std::vector<double> rates, shares;
  ProgressBar bar("measuring", "rounds", 1);
  for (int round = 0; round < c.rounds; ++round) {
    bar.show(static_cast<std::size_t>(round), static_cast<std::size_t>(c.rounds));
    // Repeats the same prompts. On a GPU they are cached, so one step computes all first tokens.
    number = 0;
    const double before = limits.bandwidth();
    TRY(DecodeTimes spent, run_decoding(engine, c.shape, batch_size, number, times));
    if (!on_host) spent.steps = c.shape.output_len - 1;
    const double plain = (before + limits.bandwidth()) / 2;
    all.seconds += spent.seconds;
    all.steps += spent.steps;
    for (std::size_t i = 0; i < kOpNames.size(); ++i) all.in_operators[i] += spent.in_operators[i];
    rates.push_back(bytes_per_step * spent.steps / spent.seconds);
    shares.push_back(rates.back() / plain);
  }
  bar.finish();
  std::ranges::sort(rates);
  std::ranges::sort(shares);
  const double rate = percentile_of(rates, 50), share = percentile_of(shares, 50);
  object result{{"batch_size", batch_size},
                {"input_len", c.shape.input_len},
                {"prefix_len", c.shape.prefix_len},
                {"seconds", all.seconds},
                {"steps", all.steps},
                {"bytes_per_step", bytes_per_step},
                {"bytes_per_second", rate},
                {"share_of_read_bandwidth", share}};
  fmt::print("{:.0f} steps of {} sequences, {:.1f} us each\n", all.steps, batch_size,
             bytes_per_step / rate * 1e6);
  if (on_host) print_parts(all, result);
  fmt::print("{:.3f} GB of weights and cache per step: {:.1f} GB/s, {:.2f} of plain {} ({:.2f} to {:.2f})\n",
             bytes_per_step * 1e-9, rate * 1e-9, share, on_host ? "reading" : "copying", shares.front(),
             shares.back());
  std::fflush(stdout);
  return result;
}

Result<> bench_step(BenchCommand& c) {
  if (c.shape.output_len < 2)
    return invalid("output-len",
                   "must be at least 2, because decoding is measured from the second output token on");
  EngineOptions& options = c.runtime.engine;
  TRY_VOID(find_models(options, c.runtime.hub));
  options.schedule.max_num_seqs = std::max(options.schedule.max_num_seqs, std::ranges::max(c.batch_sizes));
  OpTimes times;
  std::unique_ptr<MachineLimits> limits;
  bool on_host = false;
  const LoadHooks hooks{.dress = [&](Backend backend) {
    on_host = !backend.stream->asynchronous();
    return timed_backend(std::move(backend), times);
  }};
  std::unique_ptr<Backend> copying;  // backend that measures the memory bandwidth of a GPU
  TRY(const auto loaded, load_engine(options, hooks));
  if (on_host) {
    TRY(const CpuIsa isa, usable_isa());
    TRY(HostLimits host, HostLimits::make(options.device.threads, isa));
    limits = std::make_unique<HostLimits>(std::move(host));
  } else {
    TRY(Backend cuda, make_cuda_backend());
    copying = std::make_unique<Backend>(std::move(cuda));
    TRY(DeviceLimits device, DeviceLimits::make(*copying));
    limits = std::make_unique<DeviceLimits>(std::move(device));
  }
  boost::json::array results;
  for (const int batch_size : c.batch_sizes) {
    TRY(object result, measure_steps(*loaded, c, batch_size, *limits, on_host, times));
    results.push_back(std::move(result));
    // Saves the results so far, because a later batch size may fail.
    TRY_VOID(write_output("output-json", c.output_json, serialize(object{{"batches", results}}) + "\n"));
  }
  return {};
}

using BenchFlag = FlagRow<BenchCommand>;

constexpr BenchFlag kBenchFlags[] = {
    {"--input-len", flag::to<&BenchCommand::shape, &BatchShape::input_len>,
     "Number of prompt tokens per request", flag::range(1, 1 << 20)},
    {"--output-len", flag::to<&BenchCommand::shape, &BatchShape::output_len>,
     "Number of output tokens per request; replaces the lengths in the data set's file",
     flag::range(1, 1 << 20)},
    {"--temperature", flag::to<&BenchCommand::shape, &BatchShape::temperature>,
     "Sampling temperature; 0: greedy", flag::range(0.0, 2.0)},
    {"--output-json", flag::to<&BenchCommand::output_json>, "File to which the result is written as JSON"},
};

constexpr BenchFlag kLatencyFlags[] = {
    {"--batch-size", flag::to<&BenchCommand::batch_size>, "Number of requests in a batch",
     flag::range(1, 4096)},
    {"--num-iters-warmup", flag::to<&BenchCommand::warmup_iterations>,
     "Number of batches before the measurement begins", flag::range(0, 1 << 20)},
    {"--num-iters", flag::to<&BenchCommand::iterations>, "Number of batches to measure",
     flag::range(1, 1 << 20)},
};

constexpr FlagRow<traffic::DatasetOptions> kThroughputFlags[] = {
    {"--num-prompts", flag::to<&traffic::DatasetOptions::num_prompts>, "Number of requests",
     flag::range(1, 1 << 20)},
    {"--dataset-name", flag::to<&traffic::DatasetOptions::name>,
     "Data set of the prompts; random makes prompts of --input-len and answers of --output-len tokens",
     OneOf{"random|prefix_repetition|sharegpt|sonnet|custom|hf"}},
    {"--dataset-path", flag::to<&traffic::DatasetOptions::path>,
     "File with the data set sharegpt (JSON), sonnet (text) or custom (JSON lines with the field "
     "\"prompt\")"},
    {"--prefix-len", flag::to<&traffic::DatasetOptions::random_prefix_len>,
     "For random: number of tokens that all prompts have in common, in addition to --input-len",
     flag::range(0, 1 << 20)},
};

constexpr BenchFlag kStepFlags[] = {
    {"--batch-size", flag::to<&BenchCommand::batch_sizes>,
     "Number of requests in a batch; with several numbers, each is measured", flag::range(1, 4096)},
    {"--rounds", flag::to<&BenchCommand::rounds>, "Number of batches to measure", flag::range(1, 1 << 20)},
    {"--prefix-len", flag::to<&BenchCommand::shape, &BatchShape::prefix_len>,
     "Number of tokens that all prompts have in common, in addition to --input-len", flag::range(0, 1 << 20)},
};

CLI::App* add_command(CLI::App& bench, const char* name, const char* help, BenchCommand& c) {
  CLI::App* command = bench.add_subcommand(name, help);
  add_engine_flags(*command, c.runtime.engine);
  add_hub_flags(*command, c.runtime.hub, environment);
  add_flags(*command, c, "Options", kBenchFlags);
  return command;
}

// Several ranks or engines run in separate processes.
void take_layout(BenchCommand& c, const CLI::App& command) {
  const EngineOptions& engine = c.runtime.engine;
  if (engine.parallel.rank_layout().size() * engine.parallel.data_parallel_size > 1)
    c.runtime.program.command = engine_process_command(command);
}

// The engine's queue must hold all requests.
void take_queue(BenchCommand& c) {
  int& most = c.runtime.engine.max_queued;
  if (c.dataset.num_prompts <= most) return;
  most = c.dataset.num_prompts;
  std::vector<std::string>& process = c.runtime.program.command;
  if (!process.empty()) process.push_back(fmt::format("--max-num-queued-reqs={}", most));
}

}  // namespace

void add_bench(CLI::App& program, Outcome& outcome) {
  CLI::App* bench = program.add_subcommand("bench", "Measure the engine, or a running server");
  bench->require_subcommand(1);
  auto options = std::make_shared<BenchCommand>();

  CLI::App* latency = add_command(*bench, "latency", "Time of one batch of equal requests", *options);
  add_flags(*latency, *options, "Options", kLatencyFlags);
  outcome.runs(*latency, options, [latency](BenchCommand& c) {
    take_layout(c, *latency);
    return bench_latency(c);
  });

  CLI::App* throughput =
      add_command(*bench, "throughput", "Tokens per second, when all requests arrive at once", *options);
  add_flags(*throughput, options->dataset, "Options", kThroughputFlags);
  outcome.runs(*throughput, options, [throughput](BenchCommand& c) {
    take_layout(c, *throughput);
    take_queue(c);
    if (throughput->count("--output-len") > 0) c.output_len = c.shape.output_len;
    return bench_throughput(c);
  });

  CLI::App* step = add_command(*bench, "step", "Time of each operator in a decoding step", *options);
  add_flags(*step, *options, "Options", kStepFlags);
  outcome.runs(*step, options, bench_step);

  add_bench_ops(*bench, outcome);
  add_bench_serve(*bench, outcome);
  add_bench_sweep(*bench, outcome);
}

}  // namespace octavo
