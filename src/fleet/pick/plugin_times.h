// Times of plugins, for the metric llm_d_epp_plugin_duration_seconds. Thread-safe.
#pragma once

#include <mutex>
#include <string>

#include "fleet/decide/step_timer.h"
#include "fleet/observe/metric_family.h"

namespace octavo::fleet {

class PluginTimes : public StepTimer {
 public:
  PluginTimes();
  std::int64_t now_ns() const override;
  void took(std::string_view point, const StepName& step, std::int64_t ns) override;
  void write(std::string& out) const;

 private:
  mutable std::mutex mutex_;
  HistogramFamily seconds_;
};

}  // namespace octavo::fleet
