// Decides whether the worker or the request has caused a worker's error.
#pragma once

#include <cstdint>
#include <optional>

#include "http/message.h"

namespace octavo::fleet {

// Whether another worker may succeed.
bool worth_a_retry(int status);

// Whether the worker is healthy but overloaded.
bool is_backpressure(int status);

// Seconds from now, rounded up. nullopt: no Retry-After, or it is neither a number nor an HTTP date.
std::optional<std::int64_t> retry_after_s(const http::Response& answer);

// Whether the error names a field of the request ("param") or is the client's own timeout: other workers
// would fail, too.
bool is_the_requests_own(std::string_view body);

}  // namespace octavo::fleet
