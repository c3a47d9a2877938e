// Numbers of tokens that an answer reports.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::fleet {

struct Usage {
  std::int64_t input_tokens = -1;  // -1 if not reported
  std::int64_t output_tokens = -1;
  std::int64_t cached_tokens = -1;  // of the input
};

// Number of bytes at the end of a response that contain its usage.
inline constexpr std::size_t kUsageTailBytes = 4096;

// The last `"usage": {...}` in the tail of an answer's body, whole or as events.
std::optional<boost::json::object> usage_object(std::string_view tail);
// Its numbers, by OpenAI's or Anthropic's names.
Usage find_usage(std::string_view tail);

}  // namespace octavo::fleet
