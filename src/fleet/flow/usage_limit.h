// From which saturation on a band's requests wait: a policy is a row in usage_limit.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "fleet/decide/parameters.h"

namespace octavo::fleet {

class UsageLimit {
 public:
  virtual ~UsageLimit() = default;
  // Asked once for each turn. ceilings: of the bands, the highest first; 1 where nothing is written.
  // priorities: theirs.
  virtual void limit(double saturation, std::span<const int> priorities, std::span<double> ceilings) = 0;
};

struct UsageLimitRow {
  std::string_view type;  // llm-d's name
  std::shared_ptr<UsageLimit> (*make)(Parameters& parameters);
  bool alpha = false;  // llm-d calls it so
};

const UsageLimitRow* find_usage_limit(std::string_view type);  // null if the type is unknown
std::shared_ptr<UsageLimit> static_usage_limit(double threshold);

}  // namespace octavo::fleet
