// A request that waits until endpoints have capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

struct FlowItem {
  std::uint64_t id = 0;                      // from the caller; unique among waiting requests
  int priority = 0;                          // higher is dispatched first
  std::string fairness_id = "default-flow";  // the request is counted in this flow's share of its band
  std::uint64_t bytes = 0;
  std::int64_t arrived_us = 0;
  std::optional<std::int64_t> ttft_slo_us = {};  // limit on the time from its arrival to its first token
};

enum class FlowOutcome : std::uint8_t {
  dispatched,
  rejected_capacity,          // the limit of bytes or waiting requests is reached
  rejected_no_endpoints,      // the limit is reached, and there are no endpoints
  evicted_ttl,                // has waited too long
  evicted_no_endpoints,       // has waited too long, and there are no endpoints
  evicted_context_cancelled,  // the client has disconnected
  evicted_other,              // the program is stopping
};

std::string_view name(FlowOutcome outcome);

}  // namespace octavo::fleet
