// Flags of llm-d's endpoint picker that its Helm charts set, and that `octavo pick` does not need.
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
  std::map<std::string, bool> switches;        // by flag, if given
  std::map<std::string, std::string> texts;
  int page_port = 0;  // deprecated: of engines' metrics; 0: the endpoint's own
  std::string page_path, page_scheme;
  bool page_any_certificate = true;
};

void add_epp_flags(CLI::App& command, EppFlags& flags);

// Applies the flags: the log level, the metrics to read. Logs each flag without effect. Errors: a flag whose
// omission would make the server less safe than the caller expects.
Result<> apply_epp_flags(const EppFlags& flags, fleet::EndpointPickerConfig& config);

}  // namespace octavo
