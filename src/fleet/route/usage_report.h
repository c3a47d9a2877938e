// Reads the usage of an answer, so that the router can compare it with its estimate.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::fleet {

struct UsageReport {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // 0 if it is not reported
};

// Reads a complete response, or one event of a stream. Returns nullopt if it has no usage.
std::optional<UsageReport> read_usage(std::string_view json);

}  // namespace octavo::fleet
