// Computes how much of a device's memory the KV cache gets. All sizes are in bytes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo {

struct MemoryPlan {
  std::int64_t requested = 0;  // kv_cache_memory_bytes; 0: automatic
  std::int64_t useful = 0;     // maximum number of bytes that the running sequences can use
  std::int64_t all = 0;
  std::int64_t available = 0;  // free memory after weights and workspaces are allocated; 0: unknown
  std::int64_t reserved = 0;   // memory for allocations that come after the cache
  bool shared_with_host = true;
  // fraction of the device memory that the engine may use; ignored if shared_with_host
  double utilization = 0.9;
};

// Returns the bytes of the KV cache. In host memory, the cache gets at most 4 GiB and at most half of the
// available memory. In separate device memory, it gets all memory within `utilization` that nothing else
// needs.
inline std::int64_t cache_bytes(const MemoryPlan& plan) {
  if (plan.requested > 0) return plan.requested;
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
