#include "fleet/observe/metrics_text.h"

namespace octavo::fleet {

std::string escaped_label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out.push_back('\\');
    c == '\n' ? void(out += "\\n") : out.push_back(c);
  }
  return out;
}

void write_histogram(std::string& out, std::string_view name, std::string_view help, const Histogram& h) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  write_samples(out, name, "", h);
}

void write_samples(std::string& out, std::string_view name, std::string_view labels, const Histogram& h) {
  const std::string_view comma = labels.empty() ? "" : ",";
  const std::string all = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < h.counts().size(); ++i) {
    total += h.counts()[i];
    const std::string bound = i < h.bounds().size() ? fmt::format("{}", h.bounds()[i]) : "+Inf";
    fmt::format_to(std::back_inserter(out), "{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma, bound,
                   total);
  }
  fmt::format_to(std::back_inserter(out), "{0}_sum{1} {2}\n{0}_count{1} {3}\n", name, all, h.sum(), total);
}

void write_counter(std::string& out, std::string_view name, std::string_view help, std::int64_t value) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} counter\n{0} {2}\n", name, help, value);
}

void write_gauge(std::string& out, std::string_view name, std::string_view help, double value) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} gauge\n{0} {2}\n", name, help, value);
}

}  // namespace octavo::fleet
