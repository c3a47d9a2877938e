// Flags of the autoscaler in `octavo plan live` and `octavo plan compare`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "fleet/plan/autoscaler.h"
#include "fleet/plan/sizing.h"

namespace octavo {

struct AutoscalerFlags {
  std::vector<std::string> slo;
  double share = 0.99;
  std::string capacity;
  double tokens_per_second = 0;
  std::string window = "60s", interval = "5s", scale_down_delay = "300s";
  std::string predictor = "trend";
  fleet::AutoscalerRules rules;  // flags set the limits on replicas and the sensitivity
};

struct AutoscalerSetup {
  fleet::AutoscalerRules rules;
  fleet::Slo slo;
  fleet::CapacityTable capacity;
  const fleet::Predictor* predictor;
  std::int64_t interval_us;
};

// foresees: whether to also offer predictors that know the future load of a trace. predictor: must outlive
// the subcommand.
void add_predictor_flag(CLI::App& command, const std::string& group, bool foresees, std::string& predictor);

// Parsing sets `flags`, which must outlive the subcommand.
void add_autoscaler_flags(CLI::App& command, const std::string& group, AutoscalerFlags& flags);

// Errors name the field.
Result<AutoscalerSetup> autoscaler_setup(const AutoscalerFlags& flags);

}  // namespace octavo
