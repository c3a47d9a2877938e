#include "fleet/observe/metric_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace octavo::fleet {

std::optional<MetricLine> read_metric(std::string_view line) {
  const std::size_t name_end = line.find_first_of("{ ");
  if (line.starts_with('#') || name_end == std::string_view::npos) return std::nullopt;
  MetricLine sample{.name = line.substr(0, name_end)};
  std::size_t value_at = name_end;
  if (line[name_end] == '{') {
    const std::size_t close = line.rfind('}');
    if (close == std::string_view::npos) return std::nullopt;
    sample.labels = line.substr(name_end + 1, close - name_end - 1);
    value_at = close + 1;
  }
  value_at = line.find_first_not_of(' ', value_at);
  if (value_at == std::string_view::npos) return std::nullopt;
  if (std::from_chars(line.data() + value_at, line.data() + line.size(), sample.value).ec != std::errc() ||
      !std::isfinite(sample.value))
    return std::nullopt;
  return sample;
}

std::string_view metric_label(std::string_view labels, std::string_view name) {
  for (std::size_t at = 0; at < labels.size();) {
    const std::size_t equals = labels.find("=\"", at);
    if (equals == std::string_view::npos) break;
    std::size_t end = equals + 2;
    while (end < labels.size() && labels[end] != '"') end += labels[end] == '\\' ? 2 : 1;
    if (end >= labels.size()) break;
    const std::size_t begin = std::min(labels.find_first_not_of(", ", at), equals);
    if (labels.substr(begin, equals - begin) == name) return labels.substr(equals + 2, end - equals - 2);
    at = end + 1;
  }
  return "";
}

}  // namespace octavo::fleet
