#include "serve/stats_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"

namespace octavo {

std::optional<std::string> stats_line(const EngineStats& before, const EngineStats& now, double seconds) {
  const auto grown = [](std::int64_t from, std::int64_t to) { return static_cast<double>(to - from); };
  const double prompt = grown(before.tokens.prompt, now.tokens.prompt),
               generated = grown(before.tokens.generation, now.tokens.generation);
  if (prompt <= 0 && generated <= 0 && now.requests.running + now.requests.waiting == 0) return std::nullopt;
  const double looked_up = grown(before.prefix_cache.queries, now.prefix_cache.queries),
               found = grown(before.prefix_cache.hits, now.prefix_cache.hits);
  const auto percent = [](double part, double whole) { return whole > 0 ? 100 * part / whole : 0.0; };
  return fmt::format(
      "Engine {:03}: Avg prompt throughput: {:.1f} tokens/s, Avg generation throughput: {:.1f} tokens/s, "
      "Running: {} "
      "reqs, Waiting: {} reqs, KV cache usage: {:.1f}%, Prefix cache hit rate: {:.1f}%",
      now.engine, prompt / seconds, generated / seconds, now.requests.running, now.requests.waiting,
      percent(now.blocks.used, now.blocks.total), percent(found, looked_up));
}

std::vector<std::string> stats_lines(std::span<const EngineStats> before, std::span<const EngineStats> now,
                                     double seconds) {
  std::vector<std::string> lines;
  for (const EngineStats& engine : now) {
    const auto earlier = std::ranges::find(before, engine.engine, &EngineStats::engine);
    // Skips an engine that has restarted in between, because its counters began at 0 again.
    if (earlier == before.end() || engine.tokens.prompt < earlier->tokens.prompt) continue;
    if (auto line = stats_line(*earlier, engine, seconds)) lines.push_back(*std::move(line));
  }
  return lines;
}

StatsLog::StatsLog(const EngineClient& engine, double seconds)
    : engine_(engine), seconds_(seconds), thread_([this] { run(); }) {}

StatsLog::~StatsLog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_one();
  thread_.join();
}

void StatsLog::run() {
  std::vector<EngineStats> before = engine_.stats();
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, std::chrono::duration<double>(seconds_), [this] { return ended_; })) {
    std::vector<EngineStats> now = engine_.stats();
    for (const std::string& line : stats_lines(before, now, seconds_)) log_info("{}", line);
    before = std::move(now);
  }
}

}  // namespace octavo
