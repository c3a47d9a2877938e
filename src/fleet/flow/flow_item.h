// A request that waits until the endpoints can take it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

struct FlowItem {
  std::uint64_t id = 0;                      // the caller's, unique among those that wait
  int priority = 0;                          // higher goes first
  std::string fairness_id = "default-flow";  // whose share of its band it takes
  std::uint64_t bytes = 0;
  std::int64_t arrived_us = 0;
  std::optional<std::int64_t> ttft_slo_us = {};  // from its arrival to its first token
};

// Final outcome of a request.
enum class FlowOutcome : std::uint8_t {
  dispatched,
  rejected_capacity,          // more bytes or requests wait than may
  rejected_no_endpoints,      // the same, while there are no endpoints
  evicted_ttl,                // it has waited for too long
  evicted_no_endpoints,       // the same, while there are no endpoints
  evicted_context_cancelled,  // the client went away
  evicted_other,              // the program stops
};

std::string_view name(FlowOutcome outcome);

}  // namespace octavo::fleet
