// Usage limit policies, as in llm-d: each sets the saturation at which the requests of a band start to
// wait.
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
  // Called once in each FlowControl::next(). `priorities` and `ceilings` have one entry for each band,
  // highest priority first. The policy may lower the ceilings, which are 1 before the call.
  virtual void limit(double saturation, std::span<const int> priorities, std::span<double> ceilings) = 0;
};

struct UsageLimitRow {
  std::string_view type;
  std::shared_ptr<UsageLimit> (*make)(Parameters& parameters);
  bool alpha = false;  // llm-d marks the policy as alpha
};

const UsageLimitRow* find_usage_limit(std::string_view type);  // null: unknown type
std::shared_ptr<UsageLimit> static_usage_limit(double threshold);

}  // namespace octavo::fleet
