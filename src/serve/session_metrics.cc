#include "serve/session_metrics.h"

#include <fmt/format.h>

#include <functional>
#include <iterator>

namespace octavo {
namespace {

struct SessionMetric {
  std::string_view name, type, help;
  double (*value)(const SessionStats&);
};

constexpr SessionMetric kMetrics[] = {
    {"sessions", "gauge", "Sessions that the engine knows.",
     [](const SessionStats& s) -> double { return s.sessions; }},
    {"sessions_pinned", "gauge", "Pinned sessions.",
     [](const SessionStats& s) -> double { return s.pinned; }},
    {"session_held_blocks", "gauge", "KV blocks that sessions hold.",
     [](const SessionStats& s) -> double { return s.held_blocks; }},
    {"session_pinned_blocks", "gauge", "KV blocks of pinned sessions.",
     [](const SessionStats& s) -> double { return s.pinned_blocks; }},
    {"session_turns_total", "counter", "Requests of sessions that have ended.",
     [](const SessionStats& s) { return static_cast<double>(s.turns); }},
    {"session_prompt_tokens_total", "counter", "Prompt tokens of the ended requests of sessions.",
     [](const SessionStats& s) { return static_cast<double>(s.prompt_tokens); }},
    {"session_cached_tokens_total", "counter", "Cached prompt tokens of the ended requests of sessions.",
     [](const SessionStats& s) { return static_cast<double>(s.cached_tokens); }},
    {"session_reclaimed_blocks_total", "counter", "KV blocks that requests took from sessions.",
     [](const SessionStats& s) { return static_cast<double>(s.reclaimed_blocks); }},
    {"session_refused_pins_total", "counter", "Pins that were refused because they exceeded a quota.",
     [](const SessionStats& s) { return static_cast<double>(s.refused_pins); }},
    {"sessions_expired_total", "counter", "Sessions whose time to live has ended.",
     [](const SessionStats& s) { return static_cast<double>(s.expired); }}};

}  // namespace

std::string session_metrics(std::span<const EngineStats> engines, std::string_view model_name) {
  std::string out;
  for (const SessionMetric& metric : kMetrics) {
    fmt::format_to(std::back_inserter(out), "# HELP octavo:{} {}\n# TYPE octavo:{} {}\n", metric.name,
                   metric.help, metric.name, metric.type);
    for (const EngineStats& e : engines)
      fmt::format_to(std::back_inserter(out), "octavo:{}{{model_name=\"{}\",engine=\"{}\"}} {}\n",
                     metric.name, model_name, e.engine, metric.value(e.prefix_cache.sessions));
  }
  return out;
}

}  // namespace octavo
