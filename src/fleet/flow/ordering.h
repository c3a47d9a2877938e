// Policies that order the requests of one flow: a row each.
#pragma once

#include <cstdint>
#include <string_view>

#include "fleet/flow/flow_item.h"

namespace octavo::fleet {

struct Ordering {
  std::string_view type;  // llm-d's name
  // The lower the earlier; equals in the order of their arrival. ttl_us: how long requests may wait.
  std::int64_t (*key)(const FlowItem& item, std::int64_t ttl_us);
};

const Ordering* find_ordering(std::string_view type);  // null: unknown type
const Ordering& default_ordering();                    // first come, first served

}  // namespace octavo::fleet
