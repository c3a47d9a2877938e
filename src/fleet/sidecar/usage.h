// The fields of answers that the sidecar reads and writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::fleet {

// The answer, or one event of a stream, with so many cached tokens in its usage; without a usage as it came.
// The engine that decodes has all of the prompt from the other one, which says nothing of what had been
// cached there.
std::string with_cached_tokens(const std::string& answer, std::int64_t tokens);

// An answer that ends with finish_reason "cache_threshold": too little of the prompt was cached, nothing was
// computed.
bool not_cached(std::string_view answer);

enum class Beginning : std::uint8_t { unknown, answer, not_cached };

// Which of them a stream is, by its next event.
Beginning beginning_of(std::string_view event);

}  // namespace octavo::fleet
