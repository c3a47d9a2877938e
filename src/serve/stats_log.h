// vLLM's periodic log line with throughput, queue and cache, while the engine is busy.
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

// The log line for an engine. before, now: snapshots `seconds` apart. nullopt: the engine was idle.
std::optional<std::string> stats_line(const EngineStats& before, const EngineStats& now, double seconds);

// One line for each engine. Engines may have been added or removed between the snapshots.
std::vector<std::string> stats_lines(std::span<const EngineStats> before, std::span<const EngineStats> now,
                                     double seconds);

class StatsLog {
 public:
  // Every `seconds`, writes a line for each engine that is not idle.
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
