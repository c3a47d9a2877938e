#include "request/prometheus_text.h"

#include <fmt/format.h>

#include <iterator>

namespace octavo {

std::string escaped_label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

void append_histogram(std::string& text, std::string_view name, std::string_view labels,
                      const Histogram& histogram) {
  const auto out = std::back_inserter(text);
  const std::string_view comma = labels.empty() ? "" : ",";
  const std::string braces = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  std::int64_t below = 0;
  const auto counts = histogram.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    below += counts[i];
    const bool last = i + 1 == counts.size();
    const std::string bound = last ? "+Inf" : fmt::format("{}", histogram.bounds()[i]);
    fmt::format_to(out, "{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma, bound, below);
  }
  fmt::format_to(out, "{}_sum{} {}\n{}_count{} {}\n", name, braces, histogram.sum(), name, braces, below);
}

}  // namespace octavo
