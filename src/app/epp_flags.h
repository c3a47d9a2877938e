// Accepts flags that the Helm charts of llm-d's endpoint picker set, but that `octavo pick` does not need.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "base/error.h"
#include "fleet/pick/endpoint_picker_config.h"

namespace octavo {

struct EppFlags {
  std::string verbosity, level;
  // deprecated flags that name the engines' metrics, and their values
  std::map<std::string, std::string> metrics;
  // switches that the user gave, by flag
  std::map<std::string, bool> switches;
  std::map<std::string, std::string> texts;
  int page_port = 0;  // deprecated: port of the engines' metrics; 0: that of the endpoint
  std::string page_path, page_scheme;
  bool page_any_certificate = true;
};

void add_epp_flags(CLI::App& command, EppFlags& flags);

// Applies the log level and the metric names, and logs each flag without effect. Returns an error for a flag
// if Octavo would be less safe than the flag promises.
Result<> apply_epp_flags(const EppFlags& flags, fleet::EndpointPickerConfig& config);

}  // namespace octavo
