// Reads and writes the fields of answers that the sidecar needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Sets the number of cached tokens in the usage of a response or stream event; without a usage nothing
// changes. The decode engine reports the whole prompt as cached, since it receives it from the prefill
// engine. It does not know which tokens the prefill engine had in its cache.
std::string with_cached_tokens(const std::string& answer, std::int64_t tokens);

// Whether the answer ends with finish_reason "cache_threshold": too little of the prompt was cached, and the
// engine computed nothing.
bool not_cached(std::string_view answer);

enum class Beginning : std::uint8_t { unknown, answer, not_cached };

// Decides by the next event what the stream begins with.
Beginning beginning_of(std::string_view event);

}  // namespace octavo::fleet
