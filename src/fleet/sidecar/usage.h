// Reads and writes the fields of answers that the sidecar needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Sets the number of cached tokens in the usage of a response or stream event, if it has a usage. The decode
// engine reports the whole prompt as cached, because it fetched the prompt from the prefill engine. It does
// not know which tokens the prefill engine had cached.
std::string with_cached_tokens(const std::string& answer, std::int64_t tokens);

// Returns whether the answer ends with finish_reason "cache_threshold": too little of the prompt was cached,
// and the engine computed nothing.
bool not_cached(std::string_view answer);

enum class Beginning : std::uint8_t { unknown, answer, not_cached };

// Returns what the stream begins with, as far as this event shows it.
Beginning beginning_of(std::string_view event);

}  // namespace octavo::fleet
