// A request that waits for capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

struct FlowItem {
  std::uint64_t id = 0;                      // from the caller; unique among waiting requests
  int priority = 0;                          // higher values are dispatched first
  std::string fairness_id = "default-flow";  // name of its flow
  std::uint64_t bytes = 0;
  std::int64_t arrived_us = 0;
  std::optional<std::int64_t> ttft_slo_us = {};  // limit on the time from arrival to the first token
};

enum class FlowOutcome : std::uint8_t {
  dispatched,
  rejected_capacity,          // limit of bytes or requests reached
  rejected_no_endpoints,      // limit reached, and there are no endpoints
  evicted_ttl,                // waiting time exceeded
  evicted_no_endpoints,       // waiting time exceeded, and there are no endpoints
  evicted_context_cancelled,  // the client has disconnected
  evicted_other,              // the program stops
};

std::string_view name(FlowOutcome outcome);

}  // namespace octavo::fleet
