#include "serve/step_trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/quoted_text.h"
#include "openai/request_fields.h"

namespace octavo {
namespace {

// Time between two reads of an engine's steps. Short, because an engine keeps only its last 256 steps.
constexpr std::chrono::milliseconds kTraceInterval{25};
constexpr std::size_t kPrefixBytesMax = 128;

bool is_plain(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// The prefix becomes part of a file name, so its characters are checked.
Result<> check_prefix(std::string_view prefix) {
  const bool good =
      !prefix.empty() && prefix.size() <= kPrefixBytesMax && is_plain(prefix[0]) &&
      std::ranges::all_of(prefix, [](char c) { return is_plain(c) || c == '.' || c == '_' || c == '-'; });
  if (good) return {};
  return invalid(
      "profile_prefix",
      "must have 1 to {} letters, digits, '.', '_' and '-', and begin with a letter or digit, got {}",
      kPrefixBytesMax, quoted_text(prefix));
}

Result<> read_steps(openai::Fields& fields, StepTraceOptions& options) {
  TRY_VOID(fields.integer("delay_iterations", options.delay_steps, 0));
  return fields.integer("max_iterations", options.max_steps, 0, kTracedStepsMax);
}

std::int64_t ms_since_1970() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class TraceFile {
 public:
  static Result<TraceFile> create(const std::string& path, bool gzip) {
    gzFile file = gzopen(path.c_str(), gzip ? "wb" : "wbT");
    if (file == nullptr)
      return failure(ErrorCode::io, "cannot write the file {}: {}", path,
                     std::generic_category().message(errno));
    return TraceFile(path, file);
  }

  void write(std::string_view text) {
    failed_ |= gzwrite(file_.get(), text.data(), static_cast<unsigned>(text.size())) == 0;
  }
  // Returns an error if the file is incomplete.
  Result<> close() {
    failed_ |= gzclose(file_.release()) != Z_OK;
    if (failed_) return failure(ErrorCode::io, "cannot write the whole file {}", path_);
    log_info("wrote the trace of the engine's steps to {}", path_);
    return {};
  }

 private:
  struct Closes {
    void operator()(gzFile file) const { gzclose(file); }
  };
  TraceFile(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<gzFile_s, Closes> file_;
  bool failed_ = false;
};

}  // namespace

Result<StepTraceOptions> read_profiler_config(const boost::json::object& config) {
  openai::Fields fields(config);
  StepTraceOptions options;
  std::string profiler;
  TRY_VOID(fields.text("profiler", profiler));
  if (profiler != "torch")
    return invalid("profiler", "must be \"torch\", the only supported format, got {}", quoted_text(profiler));
  TRY_VOID(fields.text("torch_profiler_dir", options.folder));
  if (options.folder.empty()) return invalid("torch_profiler_dir", "must be given");
  TRY_VOID(fields.boolean("torch_profiler_use_gzip", options.gzip));
  TRY_VOID(read_steps(fields, options));
  // Accepts options of PyTorch's profiler for data that this trace does not have.
  fields.accept({"torch_profiler_with_stack", "torch_profiler_dump_cuda_time_total", "ignore_frontend"});
  for (const std::string& name : fields.unread()) return invalid(name, "is not supported");
  return options;
}

// A running trace: the file, and the thread that writes the file.
class StepTrace::Recording {
 public:
  Recording(const EngineClient& engine, StepTraceOptions options, TraceFile file)
      : engine_(engine), options_(std::move(options)), file_(std::move(file)) {
    if (options_.max_steps == 0) options_.max_steps = kTracedStepsMax;
    file_.write("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    for (const EngineStats& stats : engine_.stats()) {
      newest_[stats.engine] = {.number = newest_step(stats)};
      write_event(fmt::format(
          R"({{"name": "process_name", "ph": "M", "pid": {0}, "args": {{"name": "engine {0}"}}}})",
          stats.engine));
    }
    thread_ = std::thread([this] { run(); });
  }

  Result<> end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    ends_.notify_one();
    thread_.join();
    std::int64_t lost = 0;
    for (const auto& [engine, seen] : newest_) lost += seen.lost;
    file_.write(fmt::format("\n], \"otherData\": {{\"steps_lost\": {}}}}}\n", lost));
    return file_.close();
  }

 private:
  struct Seen {
    std::int64_t number = 0;  // number of the last step that was read
    int steps = 0;            // number of steps since the start of the trace
    std::int64_t lost = 0;    // number of steps that the engine overwrote before they were read
  };

  static std::int64_t newest_step(const EngineStats& stats) {
    return std::ranges::max_element(stats.recent_steps, {}, &StepRecord::number)->number;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, kTraceInterval, [this] { return ended_; })) note();
    lock.unlock();
    std::this_thread::sleep_for(2 * kTraceInterval);  // waits, because the last steps may not be reported yet
    note();
  }

  void note() {
    for (const EngineStats& stats : engine_.stats()) {
      Seen& seen = newest_[stats.engine];
      if (newest_step(stats) < seen.number) seen.number = 0;  // the engine has restarted
      std::vector<StepRecord> steps;
      std::ranges::copy_if(stats.recent_steps, std::back_inserter(steps),
                           [&](const StepRecord& step) { return step.number > seen.number; });
      if (steps.empty()) continue;
      std::ranges::sort(steps, {}, &StepRecord::number);
      if (seen.number > 0) seen.lost += steps.front().number - seen.number - 1;
      seen.number = steps.back().number;
      for (const StepRecord& step : steps)
        if (const int number = seen.steps++ - options_.delay_steps;
            number >= 0 && number < options_.max_steps)
          write(stats.engine, step);
      if (seen.steps <= options_.delay_steps + options_.max_steps) write_gauges(stats, steps.back());
    }
  }

  void write(int engine, const StepRecord& step) {
    const std::string_view name = step.answer_tokens == 0   ? "prefill"
                                  : step.prompt_tokens == 0 ? "decode"
                                                            : "prefill and decode";
    const auto slice = [&](std::string_view what, std::int64_t at_us, std::int64_t us,
                           std::string_view args) {
      write_event(fmt::format(R"({{"name": "{}", "ph": "X", "pid": {}, "tid": 0, "ts": {}, "dur": {}{}}})",
                              what, engine, at_us, us, args));
    };
    slice(name, step.began_us, step.microseconds,
          fmt::format(R"(, "args": {{"step": {}, "sequences": {}, "prompt_tokens": {}, "answer_tokens": {}, )"
                      R"("kv_tokens": {}}})",
                      step.number, step.sequences, step.prompt_tokens, step.answer_tokens, step.kv_tokens));
    const std::int64_t forward_us = std::min(step.forward_us, step.microseconds);
    slice("forward", step.began_us, forward_us, "");
    slice("sample", step.began_us + forward_us, step.microseconds - forward_us, "");
  }

  // Writes the current values of gauges, at the end of the last step.
  void write_gauges(const EngineStats& stats, const StepRecord& last) {
    const std::int64_t at_us = last.began_us + last.microseconds;
    const auto gauges = [&](std::string_view name, std::string_view values) {
      write_event(fmt::format(R"({{"name": "{}", "ph": "C", "pid": {}, "ts": {}, "args": {{{}}}}})", name,
                              stats.engine, at_us, values));
    };
    gauges("requests",
           fmt::format(R"("running": {}, "waiting": {})", stats.requests.running, stats.requests.waiting));
    gauges("KV blocks", fmt::format(R"("used": {}, "cached": {})", stats.blocks.used, stats.blocks.cached));
  }

  void write_event(const std::string& event) {
    file_.write(std::exchange(begun_, true) ? ",\n" : "\n");
    file_.write(event);
  }

  const EngineClient& engine_;
  StepTraceOptions options_;
  TraceFile file_;
  bool begun_ = false;
  std::map<int, Seen> newest_;  // the key is the engine's index
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

StepTrace::StepTrace(const EngineClient& engine, StepTraceOptions options)
    : engine_(engine), options_(std::move(options)) {}

StepTrace::~StepTrace() { close(); }

Result<> StepTrace::start(const boost::json::object& session) {
  if (options_.folder.empty())
    return invalid("profiler_config",
                   R"(must be given, for example {{"profiler": "torch", "torch_profiler_dir": ".."}})");
  StepTraceOptions options = options_;
  std::string prefix = "octavo";
  openai::Fields fields(session);
  TRY_VOID(fields.text("profile_prefix", prefix));
  TRY_VOID(check_prefix(prefix));
  TRY_VOID(read_steps(fields, options));
  const std::lock_guard lock(mutex_);
  if (recording_) return invalid("", "a profile is already running: stop it first");
  std::error_code not_made;
  std::filesystem::create_directories(options.folder, not_made);
  TRY(TraceFile file, TraceFile::create(fmt::format("{}/{}_{}.trace.json{}", options.folder, prefix,
                                                    ms_since_1970(), options.gzip ? ".gz" : ""),
                                        options.gzip));
  recording_ = std::make_unique<Recording>(engine_, std::move(options), std::move(file));
  return {};
}

Result<> StepTrace::stop() {
  const std::lock_guard lock(mutex_);
  if (!recording_) return invalid("", "no profile is running: start one first");
  const std::unique_ptr<Recording> ending = std::move(recording_);
  return ending->end();
}

void StepTrace::close() {
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  const std::unique_ptr<Recording> ending = std::move(recording_);
  if (const Result<> ended = ending->end(); !ended) log_error("{}", ended.error().message);
}

}  // namespace octavo
