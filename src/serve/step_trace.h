// Writes the times of the engines' steps to a file in the trace event format of PyTorch's profiler.
// Perfetto (ui.perfetto.dev) and chrome://tracing can open the file.
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
  std::string folder{};  // folder of the files; "": tracing is disabled
  bool gzip = true;
  int delay_steps = 0;
  int max_steps = 0;    // number of steps after which the trace ends; 0: kTracedStepsMax
};
inline constexpr int kTracedStepsMax = 1'000'000;  // maximum number of traced steps per engine

// Reads vLLM's ProfilerConfig, such as {"profiler": "torch", "torch_profiler_dir": "traces"}. Also reads
// torch_profiler_use_gzip, delay_iterations and max_iterations. Returns an error with the name of an
// invalid field.
Result<StepTraceOptions> read_profiler_config(const boost::json::object& config);

class StepTrace {
 public:
  // Keeps a reference to the engine.
  StepTrace(const EngineClient& engine, StepTraceOptions options);
  ~StepTrace();

  // Starts a trace file in the options' folder, which is created if missing. session: can contain vLLM's
  // profile_prefix (the beginning of the file name), delay_iterations and max_iterations. Returns an error if
  // a trace is running or the file cannot be written.
  Result<> start(const boost::json::object& session);
  // Ends the trace. Returns an error if no trace is running or the file is incomplete.
  Result<> stop();
  // Ends the trace if one is running. Call this before the engine is destroyed.
  void close();

 private:
  class Recording;

  const EngineClient& engine_;
  const StepTraceOptions options_;
  std::mutex mutex_;
  std::unique_ptr<Recording> recording_;  // null: no trace is running
};

}  // namespace octavo
