// Writes the times of the engines' steps to a file in the trace event format, like PyTorch's profiler.
// Perfetto (ui.perfetto.dev) and chrome://tracing can open it.
#pragma once

#include <boost/json/object.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "request/engine_client.h"

namespace octavo {

struct StepTraceOptions {
  std::string folder{};  // folder of the files; "": tracing is off
  bool gzip = true;
  int delay_steps = 0;  // number of steps to skip at first
  int max_steps = 0;    // number of steps after which the trace ends; 0: kTracedStepsMax
};
inline constexpr int kTracedStepsMax = 1'000'000;  // maximum number of steps of each engine

// Reads vLLM's ProfilerConfig: {"profiler": "torch", "torch_profiler_dir": "traces"}, and
// torch_profiler_use_gzip, delay_iterations and max_iterations. Errors name the field.
Result<StepTraceOptions> read_profiler_config(const boost::json::object& config);

class StepTrace {
 public:
  // Keeps a reference to the engine.
  StepTrace(const EngineClient& engine, StepTraceOptions options);
  ~StepTrace();

  // Starts a trace file in the folder, which is created if missing. session: vLLM's profile_prefix (prefix of
  // the file name), delay_iterations and max_iterations. Errors: a trace is running, or the file cannot be
  // written.
  Result<> start(const boost::json::object& session);
  // Ends the trace. Errors: no trace is running, or the file is incomplete.
  Result<> stop();
  // Ends a running trace. Call it before the engine ends.
  void close();

 private:
  class Recording;

  const EngineClient& engine_;
  const StepTraceOptions options_;
  std::mutex mutex_;
  std::unique_ptr<Recording> recording_;  // null: no recording is running
};

}  // namespace octavo
