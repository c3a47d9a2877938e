// Writes the times of the engines' steps to a file in the trace event format, as PyTorch's profiler does.
// Perfetto (ui.perfetto.dev) and chrome://tracing open it.
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
  std::string folder{};  // of the files; "": there is no tracing
  bool gzip = true;
  int delay_steps = 0;  // left out at first
  int max_steps = 0;    // then the trace ends by itself; 0: kTracedStepsMax
};
inline constexpr int kTracedStepsMax = 1'000'000;  // of each engine

// vLLM's ProfilerConfig: {"profiler": "torch", "torch_profiler_dir": "traces"}, and torch_profiler_use_gzip,
// delay_iterations and max_iterations. Errors name the field.
Result<StepTraceOptions> read_profiler_config(const boost::json::object& config);

class StepTrace {
 public:
  // Keeps a reference.
  StepTrace(const EngineClient& engine, StepTraceOptions options);
  ~StepTrace();

  // Starts a file in the folder, which is created if missing. `session`: vLLM's profile_prefix (of the file's
  // name), delay_iterations and max_iterations. Errors: a trace is running, or the file cannot be written.
  Result<> start(const boost::json::object& session);
  // Ends the trace. Errors: none is running, or the file is incomplete.
  Result<> stop();
  // Ends a running trace, before the engine ends.
  void close();

 private:
  class Recording;

  const EngineClient& engine_;
  const StepTraceOptions options_;
  std::mutex mutex_;
  std::unique_ptr<Recording> recording_;  // the running recording, or null
};

}  // namespace octavo
