// Reads the usage in an answer, to compare it with the router's estimate.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::fleet {

struct UsageReport {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // 0: not reported
};

// Reads the usage of a completion or chat, from a complete answer or an event; nullopt if none exists.
std::optional<UsageReport> read_usage(std::string_view json);

}  // namespace octavo::fleet
