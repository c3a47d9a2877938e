// Decides whether an error is caused by the worker or by the request.
#pragma once

#include <cstdint>
#include <optional>

#include "http/message.h"

namespace octavo::fleet {

// Returns whether another worker may succeed.
bool worth_a_retry(int status);

// Returns whether the worker is healthy but overloaded.
bool is_backpressure(int status);

// Returns the seconds until Retry-After, rounded up; nullopt if it is missing or neither a number nor an HTTP
// date.
std::optional<std::int64_t> retry_after_s(const http::Response& answer);

// Returns whether the request causes the error, so that other workers would also fail: the error names a
// field ("param"), or is the client's timeout.
bool is_the_requests_own(std::string_view body);

}  // namespace octavo::fleet
