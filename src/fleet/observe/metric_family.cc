#include "fleet/observe/metric_family.h"

#include <fmt/format.h>

#include <iterator>

#include "fleet/observe/metrics_text.h"

namespace octavo::fleet {
namespace {

void write_head(std::string& out, std::string_view name, std::string_view help, std::string_view type) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

}  // namespace

std::string label_text(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
  std::string out;
  for (const auto& [name, value] : pairs)
    fmt::format_to(std::back_inserter(out), "{}{}=\"{}\"", out.empty() ? "" : ",", name,
                   escaped_label(value));
  return out;
}

void CounterFamily::write(std::string& out, std::string_view name, std::string_view help,
                          std::string_view type) const {
  write_head(out, name, help, type);
  for (const auto& [labels, value] : values_)
    fmt::format_to(std::back_inserter(out), "{}{{{}}} {}\n", name, labels, value);
}

void HistogramFamily::observe(const std::string& labels, double value) {
  values_.try_emplace(labels, bounds_).first->second.observe(value);
}

void HistogramFamily::write(std::string& out, std::string_view name, std::string_view help) const {
  write_head(out, name, help, "histogram");
  for (const auto& [labels, histogram] : values_) append_histogram(out, name, labels, histogram);
}

}  // namespace octavo::fleet
