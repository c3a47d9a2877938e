// vLLM's periodic log line: throughput, queue and cache, while there is work.
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

// A log line of an engine's work in the `seconds` between two snapshots; nullopt: it was idle.
std::optional<std::string> stats_line(const EngineStats& before, const EngineStats& now, double seconds);

// One line per engine; engines may have been added or removed meanwhile.
std::vector<std::string> stats_lines(std::span<const EngineStats> before, std::span<const EngineStats> now,
                                     double seconds);

class StatsLog {
 public:
  // Writes a line for each engine that is not idle, every `seconds`, until it is destroyed.
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
