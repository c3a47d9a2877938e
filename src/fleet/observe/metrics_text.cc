#include "fleet/observe/metrics_text.h"

namespace octavo::fleet {

void write_histogram(std::string& out, std::string_view name, std::string_view help, const Histogram& h) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  append_histogram(out, name, "", h);
}

void write_counter(std::string& out, std::string_view name, std::string_view help, std::int64_t value) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} counter\n{0} {2}\n", name, help, value);
}

void write_gauge(std::string& out, std::string_view name, std::string_view help, double value) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} gauge\n{0} {2}\n", name, help, value);
}

}  // namespace octavo::fleet
