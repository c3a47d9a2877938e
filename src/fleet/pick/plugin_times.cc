#include "fleet/pick/plugin_times.h"

#include <chrono>

namespace octavo::fleet {
namespace {

const std::vector<double> kStepSeconds{1e-7, 2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5,
                                       1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 0.1};

}  // namespace

PluginTimes::PluginTimes() : seconds_(kStepSeconds) {}

std::int64_t PluginTimes::now_ns() const {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void PluginTimes::took(std::string_view point, const StepName& step, std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  seconds_.observe(
      label_text({{"extension_point", point}, {"plugin_type", step.type}, {"plugin_name", step.name}}),
      static_cast<double>(ns) * 1e-9);
}

void PluginTimes::write(std::string& out) const {
  const std::lock_guard lock(mutex_);
  seconds_.write(out, "llm_d_epp_plugin_duration_seconds", "Time that a plugin takes for one request.");
}

}  // namespace octavo::fleet
