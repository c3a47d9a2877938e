// Decides whether a worker's error is caused by the worker or by the request.
#pragma once

#include <cstdint>
#include <optional>

#include "http/message.h"

namespace octavo::fleet {

// Another worker may succeed.
bool worth_a_retry(int status);

// The worker is healthy but overloaded.
bool is_backpressure(int status);

// Seconds from now, rounded up; nothing without a Retry-After that can be read: a number or an HTTP date.
std::optional<std::int64_t> retry_after_s(const http::Response& answer);

// The error names a field of the request ("param"), like the client's own timeout: no other worker helps.
bool is_the_requests_own(std::string_view body);

}  // namespace octavo::fleet
