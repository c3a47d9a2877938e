// octavo replay: runs recorded requests again and compares the answers.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/bench_load.h"
#include "app/commands.h"
#include "app/engine_command.h"
#include "app/environment.h"
#include "local/engine_flags.h"
#include "local/flag_table.h"
#include "local/local_generation.h"
#include "local/recorded_engine.h"
#include "record/compare.h"
#include "record/record_reader.h"

namespace octavo {
namespace {

struct ReplayCommand {
  EngineCommand engine;
  std::string path;
  std::string url;  // server to send the requests to; "": start an engine
  double speed = 1;
};

struct Counts {
  std::int64_t identical = 0, different = 0;
  // number of records that cannot be replayed, by reason
  std::map<std::string, std::int64_t> impossible;

  std::int64_t all_impossible() const {
    std::int64_t all = 0;
    for (const auto& [reason, count] : impossible) all += count;
    return all;
  }
};

class Replay {
 public:
  Replay(Service& service, RecordedEngine engine, RecordReader reader)
      : service_(service), engine_(std::move(engine)), reader_(std::move(reader)) {}

  Counts run() {
    for (bool more = true; more || held_ || !jobs_.empty();) {
      if (held_) submit(*std::exchange(held_, std::nullopt));
      while (more && !held_ && jobs_.size() < kJobsMax) more = submit_next();
      Arrivals::Arrival arrival;
      if (!jobs_.empty() && arrivals_.pop(arrival, 1000)) take(arrival);
    }
    return counts_;
  }

 private:
  static constexpr std::size_t kJobsMax = 1024;  // maximum number of requests in the engine

  struct Job {
    std::string location;
    Record record;
    std::vector<RecordedAnswer> answers{};
    int unfinished = 0;
    std::optional<Error> error{};
  };

  // Returns false after the last record.
  bool submit_next() {
    auto line = reader_.next();
    if (!line) return false;
    if (line->record)
      submit({.location = std::move(line->location), .record = *std::move(line->record)});
    else
      refuse(line->location, line->record.error());
    return true;
  }

  // If the engine's queue is full, the record waits in held_.
  void submit(Job job) {
    if (job.record.request) {
      SamplingLimits limits = service_.options.rules.limits;
      // no limit, because a recorded beam search needs more logprobs than clients may request
      limits.max_logprobs = -1;
      if (const auto valid = validated(job.record.request->sampling, limits); !valid)
        return refuse(job.location, valid.error());
    }
    auto request = replayed_request(job.record);
    if (!request) return refuse(job.location, request.error());
    job.unfinished = request->answers();
    const auto submitted = service_.engine.submit(*std::move(request), arrivals_.sink(number_));
    if (!submitted) {
      if (submitted.error().code != ErrorCode::resource_exhausted || jobs_.empty())
        return refuse(job.location, submitted.error());
      held_ = std::move(job);
      return;
    }
    jobs_.emplace(number_++, std::move(job));
  }

  void refuse(const std::string& location, const Error& error) {
    const std::string reason =
        error.field.empty() ? error.message : fmt::format("{}: {}", error.field, error.message);
    fmt::print("{}: cannot be replayed: {}\n", location, reason);
    ++counts_.impossible[reason];
  }

  void take(Arrivals::Arrival& arrival) {
    const auto found = jobs_.find(arrival.job);
    Job& job = found->second;
    const Output& output = arrival.output;
    add_output(output, job.answers);
    if (!output.finished) return;
    if (output.error) job.error = output.error;
    if (--job.unfinished > 0) return;
    job.error ? refuse(job.location, *job.error) : judge(job);
    jobs_.erase(found);
  }

  void judge(const Job& job) {
    const std::string text = difference(job.record, job.answers);
    if (text.empty()) {
      ++counts_.identical;
      return;
    }
    ++counts_.different;
    std::string adapter;
    if (const auto card = service_.adapters->find(job.record.request->identity.adapter))
      adapter = engine_.adapter_of(card->path);
    fmt::print("{}: {}: {} ({})\n", job.location, job.record.id, text,
               reasons(job.record, engine_.identity, adapter));
  }

  Service& service_;
  const RecordedEngine engine_;
  RecordReader reader_;
  Arrivals arrivals_;
  std::map<std::size_t, Job> jobs_;
  std::size_t number_ = 0;
  std::optional<Job> held_;
  Counts counts_;
};

Result<> replay_here(ReplayCommand& c, RecordReader reader) {
  RuntimeOptions& options = c.engine.runtime;
  options.program.command = engine_command(options.engine);
  TRY_VOID(find_models(options.engine, options.hub));
  const EngineOptions engine = options.engine;
  TRY(const auto runtime, start_runtime(std::move(options)));
  TRY(RecordedEngine recorded, recorded_engine(engine, runtime->engine->info()));
  const Counts counts = Replay(*runtime->service, std::move(recorded), std::move(reader)).run();
  fmt::print("{} identical, {} different, {} cannot be replayed\n", counts.identical, counts.different,
             counts.all_impossible());
  for (const auto& [reason, count] : counts.impossible) fmt::print("  {}: {}\n", count, reason);
  if (counts.different > 0)
    return failure(ErrorCode::internal, "{} requests have other answers than recorded", counts.different);
  if (counts.identical == 0)
    return failure(ErrorCode::unavailable, "no record was replayed, so no answer was compared");
  return {};
}

// Sends the recorded prompts to a server, at the recorded times divided by `speed`.
Result<> replay_load(const ReplayCommand& c, RecordReader reader) {
  struct Arrival {
    std::int64_t at_us;
    traffic::Prompt prompt;
  };
  std::vector<Arrival> arrivals;
  while (auto line = reader.next()) {
    TRY(const Record record, std::move(line->record));
    if (!record.request)
      return invalid("log",
                     "{}: has only hashes (recorded with --record-hashes-only), so it cannot be replayed",
                     line->location);
    const std::int64_t tokens = record.answers.empty() ? 0 : record.answers.front().count;
    arrivals.push_back({record.arrived_us,
                        {.ids = record.request->prompt,
                         .text = {},
                         .input_tokens = static_cast<int>(record.prompt_tokens),
                         .output_tokens = static_cast<int>(std::max<std::int64_t>(tokens, 1))}});
  }
  if (arrivals.empty()) return invalid("log", "{} contains no records", c.path);
  // Sorts by arrival, because records are in the order in which requests ended.
  std::ranges::stable_sort(arrivals, {}, &Arrival::at_us);
  std::vector<traffic::Prompt> prompts;
  std::vector<std::int64_t> due_us;
  for (Arrival& arrival : arrivals) {
    due_us.push_back(std::llround(static_cast<double>(arrival.at_us - arrivals.front().at_us) / c.speed));
    prompts.push_back(std::move(arrival.prompt));
  }
  LoadFlags flags;
  flags.base_url = c.url;
  flags.model = c.engine.runtime.engine.model.dir;
  flags.ignore_eos = true;
  flags.temperature = 0;
  flags.tokenizer = c.engine.runtime.tokenizer;
  TRY(const LoadTarget target, find_target(flags));
  constexpr double kShownPercentiles[] = {50, 99};
  const MeasuredLoad measured = measure_load(prompts, due_us, target, {}, kShownPercentiles);
  fmt::print("{}\n", boost::json::serialize(measured.figures));
  return none_failed(measured.run);
}

Result<> replay(ReplayCommand& c) {
  if (c.url.empty()) TRY_VOID(take_data_parallel(c.engine.data_parallel, false, c.engine.runtime));
  if (c.engine.child.runs_engine) return run_engine(std::move(c.engine.runtime), c.engine.child.rank, false);
  TRY(RecordReader reader, RecordReader::open(c.path));
  return c.url.empty() ? replay_here(c, std::move(reader)) : replay_load(c, std::move(reader));
}

}  // namespace

void add_replay(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand(
      "replay", "Compute recorded requests (`octavo serve --record`) again and compare the answers");
  auto options = std::make_shared<ReplayCommand>();
  command->add_option("log", options->path, "Folder with records, or one file of it")->required();
  command
      ->add_option("--url", options->url,
                   "URL of a server that gets the recorded prompts at the recorded times; its speed is "
                   "measured, and answers are not compared")
      ->group("Load");
  command
      ->add_option("--speed", options->speed,
                   "With --url: factor by which the prompts are sent faster than recorded")
      ->check(number_between(0.001, 1e6))
      ->capture_default_str()
      ->group("Load");
  add_engine_flags(*command, options->engine.runtime.engine);
  add_hub_flags(*command, options->engine.runtime.hub, environment);
  add_runtime_flags(*command, options->engine);
  add_child_flags(*command, options->engine);
  command->callback([options, &outcome] {
    if (const auto done = replay(*options); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
