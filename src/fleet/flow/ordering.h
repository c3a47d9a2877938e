// Policies that order the requests of one flow; the table has a row for each.
#pragma once

#include <cstdint>
#include <string_view>

#include "fleet/flow/flow_item.h"

namespace octavo::fleet {

struct Ordering {
  std::string_view type;  // llm-d's name
  // Requests with lower keys are earlier; equal keys: in the order of arrival. ttl_us: maximum waiting time.
  std::int64_t (*key)(const FlowItem& item, std::int64_t ttl_us);
};

const Ordering* find_ordering(std::string_view type);  // null: unknown type
const Ordering& default_ordering();                    // first come, first served

}  // namespace octavo::fleet
