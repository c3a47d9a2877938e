// How much of a device's memory the KV cache gets.
#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo {

struct MemoryPlan {
  std::int64_t asked = 0;      // kv_cache_memory_bytes; 0: choose
  std::int64_t useful = 0;     // more could never be used by the largest step
  std::int64_t all = 0;        // of the device
  std::int64_t available = 0;  // now, weights and workspaces being there; 0: unknown
  std::int64_t reserved = 0;   // for what is allocated after the cache
  bool shared_with_host = true;
  double utilization = 0.9;  // share of the device's memory to use, where it has its own
};

// Host memory: at most half of what is available and 4 GiB. A device's own: what the utilisation leaves after
// everything else; 0 when nothing is left.
inline std::int64_t cache_bytes(const MemoryPlan& plan) {
  if (plan.asked > 0) return plan.asked;
  constexpr std::int64_t kHostDefault = std::int64_t{4} << 30;
  if (plan.shared_with_host) {
    const std::int64_t affordable =
        plan.available > 0 ? std::min(kHostDefault, plan.available / 2) : kHostDefault;
    return std::min(affordable, plan.useful);
  }
  const auto untouched = static_cast<std::int64_t>((1 - plan.utilization) * static_cast<double>(plan.all));
  return std::clamp<std::int64_t>(plan.available - untouched - plan.reserved, 0, plan.useful);
}

}  // namespace octavo
