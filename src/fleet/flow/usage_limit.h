// Policies for the saturation from which on a band's requests wait.
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
  // Called once in each next(). ceilings: one for each band, highest band first, initially 1. priorities:
  // those of the bands.
  virtual void limit(double saturation, std::span<const int> priorities, std::span<double> ceilings) = 0;
};

struct UsageLimitRow {
  std::string_view type;  // llm-d's name
  std::shared_ptr<UsageLimit> (*make)(Parameters& parameters);
  bool alpha = false;  // the policy has level alpha in llm-d
};

const UsageLimitRow* find_usage_limit(std::string_view type);  // null: unknown type
std::shared_ptr<UsageLimit> static_usage_limit(double threshold);

}  // namespace octavo::fleet
