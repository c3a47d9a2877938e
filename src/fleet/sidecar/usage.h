// Reads the fields of responses that the sidecar needs.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo::fleet {

// Returns whether the response ends with finish_reason "cache_threshold". Then the engine has computed
// nothing, because too little of the prompt was cached.
bool not_cached(std::string_view answer);

enum class Beginning : std::uint8_t { unknown, answer, not_cached };

// Returns how the stream begins, as far as this event shows it.
Beginning beginning_of(std::string_view event);

}  // namespace octavo::fleet
