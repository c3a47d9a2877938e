// Writes /metrics pages of the router, the picker and the planner (Prometheus text format). Each function
// writes one metric with its HELP and TYPE lines.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "request/prometheus_text.h"

namespace octavo::fleet {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

void write_histogram(std::string& out, std::string_view name, std::string_view help,
                     const Histogram& histogram);
void write_counter(std::string& out, std::string_view name, std::string_view help, std::int64_t value);
void write_gauge(std::string& out, std::string_view name, std::string_view help, double value);

template <class Key>
void write_counters(std::string& out, std::string_view name, std::string_view help, std::string_view label,
                    const std::map<Key, std::int64_t>& values) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} counter\n", name, help);
  for (const auto& [key, value] : values)
    fmt::format_to(std::back_inserter(out), "{}{{{}=\"{}\"}} {}\n", name, label,
                   escaped_label(fmt::format("{}", key)), value);
}

}  // namespace octavo::fleet
