#include "fleet/observe/metric_spec.h"

#include <algorithm>

#include "base/quoted_text.h"

namespace octavo::fleet {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

bool is_name(std::string_view text, std::string_view more) {
  const auto is_letter = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || more.contains(c);
  };
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

bool MetricSpec::matches(const MetricLine& line) const {
  return line.name == name && std::ranges::all_of(labels, [&](const auto& wanted) {
           return metric_label(line.labels, wanted.first) == wanted.second;
         });
}

Result<MetricSpec> parse_metric_spec(std::string_view text, std::string_view field) {
  const auto mistake = [&] {
    return invalid(field, "must be a metric like name or name{{label=value}}, got {}", quoted_text(text));
  };
  const std::size_t brace = std::min(text.find('{'), text.size());
  MetricSpec spec{.name = std::string(trimmed(text.substr(0, brace)))};
  if (!is_name(spec.name, "_:")) return mistake();
  std::string_view pairs = trimmed(text.substr(brace));
  if (pairs.empty()) return spec;
  if (!pairs.ends_with('}')) return mistake();
  pairs = trimmed(pairs.substr(1, pairs.size() - 2));
  while (!pairs.empty()) {
    const std::string_view pair = pairs.substr(0, pairs.find(','));
    pairs.remove_prefix(std::min(pair.size() + 1, pairs.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return mistake();
    const std::string_view label = trimmed(pair.substr(0, equals));
    std::string_view value = trimmed(pair.substr(equals + 1));
    if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"'))
      value = value.substr(1, value.size() - 2);
    if (!is_name(label, "_") || value.find_first_of("\"{}") != std::string_view::npos) return mistake();
    spec.labels.emplace_back(label, value);
  }
  return spec;
}

}  // namespace octavo::fleet
