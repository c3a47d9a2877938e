// Reads and writes the fields of responses that the sidecar needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Sets the number of cached tokens in the usage of a response or an event, if it has a usage. The decode
// engine reports the whole prompt as cached, because it has fetched all blocks from the prefill engine. It
// does not know which tokens the prefill engine had cached.
std::string with_cached_tokens(const std::string& answer, std::int64_t tokens);

// Returns whether the response ends with finish_reason "cache_threshold". Then the engine has computed
// nothing, because too little of the prompt was cached.
bool not_cached(std::string_view answer);

enum class Beginning : std::uint8_t { unknown, answer, not_cached };

// Returns how the stream begins, as far as this event shows it.
Beginning beginning_of(std::string_view event);

}  // namespace octavo::fleet
