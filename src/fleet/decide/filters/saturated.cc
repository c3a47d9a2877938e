// utilization-detector and concurrency-detector as filters: they keep endpoints with free capacity. If no
// endpoint has free capacity, utilization-detector keeps all endpoints, and concurrency-detector removes
// all.
#include <algorithm>

#include "fleet/decide/plugin_table.h"
#include "fleet/decide/saturation.h"

namespace octavo::fleet {
namespace {

class UtilizedFilter : public Filter {
 public:
  explicit UtilizedFilter(UtilizationDetector detector) : detector_(detector) {}

  void filter(Cycle& cycle, Candidates& candidates) override {
    const auto full = [&](const Member* member) { return detector_.full(*member, cycle.now_us); };
    if (!std::ranges::all_of(candidates, full)) std::erase_if(candidates, full);
  }

 private:
  const UtilizationDetector detector_;
};

class ConcurrencyFilter : public Filter {
 public:
  explicit ConcurrencyFilter(ConcurrencyDetector detector) : detector_(detector) {}

  void filter(Cycle& cycle, Candidates& candidates) override {
    std::erase_if(candidates, [&](const Member* member) { return detector_.full(cycle.load(*member)); });
  }

 private:
  const ConcurrencyDetector detector_;
};

}  // namespace

std::unique_ptr<Plugin> make_utilization_detector(Parameters& parameters, Plugins&) {
  return std::make_unique<UtilizedFilter>(UtilizationDetector::read(parameters));
}

std::unique_ptr<Plugin> make_concurrency_detector(Parameters& parameters, Plugins&) {
  return std::make_unique<ConcurrencyFilter>(ConcurrencyDetector::read(parameters));
}

}  // namespace octavo::fleet
