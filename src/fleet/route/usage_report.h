// Compares the prompt's usage in an answer with the router's assumptions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::fleet {

struct UsageReport {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // 0 if not reported
};

// The usage in a whole answer of a completion or chat, or in an event of its stream; nothing without one.
std::optional<UsageReport> read_usage(std::string_view json);

}  // namespace octavo::fleet
