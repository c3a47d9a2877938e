// The fields of answers that the sidecar reads and writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Sets the number of cached tokens in the usage of a response or stream event; no change without a usage.
// The decode engine reports the whole prompt as cached, because it receives it from the prefill engine.
// The decode engine does not know which tokens the prefill engine had in its cache.
std::string with_cached_tokens(const std::string& answer, std::int64_t tokens);

// An answer that ends with finish_reason "cache_threshold": too little of the prompt was cached, and the
// engine computed nothing.
bool not_cached(std::string_view answer);

enum class Beginning : std::uint8_t { unknown, answer, not_cached };

// Which of them a stream is, by its next event.
Beginning beginning_of(std::string_view event);

}  // namespace octavo::fleet
