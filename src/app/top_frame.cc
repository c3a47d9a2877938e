#include "app/top_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/size_text.h"

namespace octavo {
namespace {

constexpr std::size_t kNameMax = 32;

// Cuts the beginning of a long name, because names differ more at the end.
std::string shortened(const std::string& name) {
  return name.size() <= kNameMax ? name : ".." + name.substr(name.size() - kNameMax + 2);
}

std::string count(double number) {
  if (number >= 1e6) return fmt::format("{:.1f}M", number * 1e-6);
  if (number >= 1e5) return fmt::format("{:.0f}k", number * 1e-3);
  return fmt::format("{:.0f}", number);
}

// Returns "p50/p95" in milliseconds.
std::string latency(const fleet::Buckets& buckets) {
  const double median = quantile(buckets, 0.5), high = quantile(buckets, 0.95);
  return median < 0 ? "-" : fmt::format("{:.0f}/{:.0f}", median * 1e3, high * 1e3);
}

std::string model_lines(const std::vector<TopRow>& rows, double now) {
  std::size_t width = 5;
  for (const TopRow& row : rows)
    for (const fleet::ModelState& model : row.models) width = std::max(width, shortened(model.name).size());
  std::string out;
  for (const TopRow& row : rows)
    for (const fleet::ModelState& m : row.models) {
      constexpr std::string_view kRow = "{:<{}} {:<8} {:>9} {:>9} {:>7} {:>9}\n";
      if (out.empty())
        out = "\n" + fmt::format(kRow, "MODEL", width, "STATE", "WEIGHTS", "KV CACHE", "LOADS", "LAST USE");
      const auto bytes = [](double size) {
        return size > 0 ? size_text(static_cast<std::int64_t>(size)) : "-";
      };
      fmt::format_to(std::back_inserter(out), kRow, shortened(m.name), width,
                     m.loaded    ? "loaded"
                     : m.waiting ? "waiting"
                                 : "unloaded",
                     bytes(m.weight_bytes), bytes(m.cache_bytes), count(m.loads),
                     m.last_use > 0 ? fmt::format("{:.0f} s", std::max(now - m.last_use, 0.0)) : "-");
    }
  return out;
}

}  // namespace

std::string top_frame(const std::vector<TopRow>& rows, double seconds, double now) {
  constexpr std::string_view kRow = "{:<{}} {:>5} {:>5} {:>5} {:>5} {:>8} {:>6} {:>9} {:>9} {:>13} {:>11}\n";
  std::size_t width = 6;
  for (const TopRow& row : rows) width = std::max(width, shortened(row.name).size());
  std::string out = fmt::format(kRow, "SERVER", width, "RUN", "WAIT", "KV%", "HIT%", "SESS/pin", "REQ/s",
                                "PROMPT/s", "GEN/s", "TTFT p50/p95", "ITL p50/p95");
  const auto line = [&](const std::string& name, const fleet::ServerLoad& l) {
    const std::string hits =
        l.prefix_queries > 0 ? fmt::format("{:.0f}", 100 * l.prefix_hits / l.prefix_queries) : "-";
    const std::string sessions = fmt::format("{}/{}", count(l.sessions), count(l.pinned_sessions));
    fmt::format_to(std::back_inserter(out), kRow, name, width, count(l.running), count(l.waiting),
                   fmt::format("{:.1f}", 100 * l.kv_usage), hits, sessions,
                   fmt::format("{:.1f}", l.finished / seconds), count(l.prompt_tokens / seconds),
                   count(l.generation_tokens / seconds), latency(l.first_token), latency(l.token_gap));
  };
  std::vector<fleet::ServerLoad> answered;
  for (const TopRow& row : rows) {
    if (row.load) {
      answered.push_back(*row.load);
      line(shortened(row.name), *row.load);
    } else {
      fmt::format_to(std::back_inserter(out), "{:<{}} {}\n", shortened(row.name), width, row.problem);
    }
  }
  if (rows.size() > 1) line("all", together(answered));
  return out + model_lines(rows, now);
}

}  // namespace octavo
