#include "fleet/flow/ordering.h"

#include <algorithm>
#include <limits>

namespace octavo::fleet {
namespace {

std::int64_t arrival(const FlowItem& item, std::int64_t) { return item.arrived_us; }

std::int64_t deadline(const FlowItem& item, std::int64_t ttl_us) { return item.arrived_us + ttl_us; }

std::int64_t slo_deadline(const FlowItem& item, std::int64_t) {
  return item.ttft_slo_us ? item.arrived_us + *item.ttft_slo_us : std::numeric_limits<std::int64_t>::max();
}

constexpr Ordering kOrderings[] = {
    {"fcfs-ordering-policy", arrival},
    {"edf-ordering-policy", deadline},
    {"slo-deadline-ordering-policy", slo_deadline},
};

}  // namespace

const Ordering* find_ordering(std::string_view type) {
  const auto found = std::ranges::find(kOrderings, type, &Ordering::type);
  return found != std::end(kOrderings) ? &*found : nullptr;
}

const Ordering& default_ordering() { return kOrderings[0]; }

}  // namespace octavo::fleet
