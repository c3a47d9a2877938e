// Logs vLLM's periodic line with throughput, queue and cache usage while the engine is busy.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "request/engine_client.h"

namespace octavo {

// Returns the log line for an engine, or nullopt if the engine was idle. before, now: snapshots with
// `seconds` seconds between them.
std::optional<std::string> stats_line(const EngineStats& before, const EngineStats& now, double seconds);

// Returns one line for each busy engine. The snapshots may have different numbers of engines.
std::vector<std::string> stats_lines(std::span<const EngineStats> before, std::span<const EngineStats> now,
                                     double seconds);

class StatsLog {
 public:
  // Logs a line for each busy engine every `seconds` seconds.
  StatsLog(const EngineClient& engine, double seconds);
  ~StatsLog();

 private:
  void run();

  const EngineClient& engine_;
  const double seconds_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace octavo
