// A request that waits in FlowControl, and the outcomes of waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

struct FlowItem {
  std::uint64_t id = 0;                      // chosen by the caller, unique among waiting requests
  int priority = 0;                          // higher values are dispatched first
  std::string fairness_id = "default-flow";
  std::uint64_t bytes = 0;
  std::int64_t arrived_us = 0;
  std::optional<std::int64_t> ttft_slo_us = {};  // maximum time from arrival to the first token
};

enum class FlowOutcome : std::uint8_t {
  dispatched,
  rejected_capacity,
  rejected_no_endpoints,      // the limit on bytes or requests was reached, and the fleet has no endpoints
  evicted_ttl,                // the request has waited for the maximum time
  evicted_no_endpoints,       // the request has waited for the maximum time, and the fleet has no endpoints
  evicted_context_cancelled,  // the client has disconnected
  evicted_other,
};

std::string_view name(FlowOutcome outcome);

}  // namespace octavo::fleet
