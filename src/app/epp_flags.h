// Flags of llm-d's endpoint picker that its Helm charts give, and that `octavo pick` has no other use for.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "base/error.h"
#include "fleet/pick/endpoint_picker_config.h"

namespace octavo {

struct EppFlags {
  std::string verbosity, level;                // of the log
  std::map<std::string, std::string> metrics;  // deprecated: names of engines' metrics, by flag
  std::map<std::string, bool> switches;        // by flag, as far as given
  std::map<std::string, std::string> texts;
};

void add_epp_flags(CLI::App& command, EppFlags& flags);

// What they change: the log's level, the metrics that are read. Logs each flag that has no effect. Errors: a flag
// without which the server would be less safe than the caller means.
Result<> apply_epp_flags(const EppFlags& flags, fleet::EndpointPickerConfig& config);

}  // namespace octavo
