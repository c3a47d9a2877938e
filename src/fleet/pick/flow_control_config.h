// Reads the plugins and the section of an EndpointPickerConfig that configure flow control.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fleet/balance/flow_gate.h"

namespace octavo::fleet {

class Parameters;

class FlowControlConfig {
 public:
  // Reads a plugin of flow control. Returns false if plugins of this type do not belong to flow control. Adds
  // errors to `parameters`.
  bool read_plugin(const std::string& name, std::string_view type, Parameters& parameters);
  static bool is_alpha(std::string_view type);

  // Reads the section `flowControl`. Call this after read_plugin(), because the section names plugins. The
  // section may name the type of a plugin that needs no parameters, even if the list of plugins does not
  // contain this plugin.
  Result<> read_section(const boost::json::value& section);

  // Reads the deprecated section `saturationDetector`. The section contains the name of a plugin, or
  // thresholds for a utilization-detector.
  Result<> read_old_detector(const boost::json::value& section);

  const FlowGateOptions& options() const { return options_; }

 private:
  Result<> read_detector(const boost::json::value& section, const std::string& where);
  Result<> read_band(const boost::json::value& band, const std::string& where, BandOptions& options);
  Result<> read_bands(const boost::json::value& bands);

  FlowGateOptions options_;
  std::map<std::string, SaturationDetector, std::less<>> detectors_ = {
      {"utilization-detector", UtilizationDetector{}}, {"concurrency-detector", ConcurrencyDetector{}}};
  std::map<std::string, std::shared_ptr<UsageLimit>, std::less<>> usage_limits_ = {
      {"static-usage-limit-policy", static_usage_limit(1)}};
  std::map<std::string, std::shared_ptr<FairnessPolicy>, std::less<>> fairness_;  // plugin name -> policy
  std::map<std::string, const Ordering*, std::less<>> orderings_;
};

}  // namespace octavo::fleet
