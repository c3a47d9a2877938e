// Ordering policies, as in llm-d: each sorts the requests of a flow.
#pragma once

#include <cstdint>
#include <string_view>

#include "fleet/flow/flow_item.h"

namespace octavo::fleet {

struct Ordering {
  std::string_view type;
  // Returns the sort key. The request with the lowest key is dispatched first, and equal keys are
  // dispatched in the order of arrival. `ttl_us` is the request's maximum waiting time.
  std::int64_t (*key)(const FlowItem& item, std::int64_t ttl_us);
};

const Ordering* find_ordering(std::string_view type);  // null: unknown type
const Ordering& default_ordering();

}  // namespace octavo::fleet
