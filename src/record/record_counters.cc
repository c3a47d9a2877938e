#include "record/record_counters.h"

#include <fmt/format.h>

#include <iterator>

namespace octavo {

RecordCounters& record_counters() {
  static RecordCounters counters;
  return counters;
}

std::string record_metrics() {
  const RecordCounters& counters = record_counters();
  std::string text = fmt::format(
      "# HELP octavo_request_records_total Finished requests that were recorded (--record).\n# TYPE "
      "octavo_request_records_total counter\noctavo_request_records_total {}\n# HELP "
      "octavo_request_records_dropped_total Finished requests that were not recorded, by reason.\n# TYPE "
      "octavo_request_records_dropped_total counter\n",
      counters.written.load());
  for (std::size_t reason = 0; reason < kRecordDropNames.size(); ++reason)
    fmt::format_to(std::back_inserter(text), "octavo_request_records_dropped_total{{reason=\"{}\"}} {}\n",
                   kRecordDropNames[reason], counters.dropped[reason].load());
  return text;
}

}  // namespace octavo
