// Reads the token counts in the usage of a response.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::fleet {

struct Usage {
  std::int64_t input_tokens = -1;  // -1: not reported
  std::int64_t output_tokens = -1;
  std::int64_t cached_tokens = -1;  // cached part of the input; -1: not reported
};

// the last bytes of a response, which contain the usage
inline constexpr std::size_t kUsageTailBytes = 4096;

// Returns the last `"usage": {...}` in the end of a body, which is JSON or an event stream.
std::optional<boost::json::object> usage_object(std::string_view tail);
// Returns the token counts of the usage. Field names may be OpenAI's or Anthropic's.
Usage token_counts(const std::optional<boost::json::object>& usage);

}  // namespace octavo::fleet
