// Decides whether the worker or the request has caused an error response.
#pragma once

#include <cstdint>
#include <optional>

#include "http/message.h"

namespace octavo::fleet {

// Returns whether another worker may succeed after one worker has answered with this status.
bool worth_a_retry(int status);

bool is_backpressure(int status);

// Returns the value of Retry-After in seconds, rounded up. Returns nullopt if the header is missing, or is
// neither a number nor an HTTP date.
std::optional<std::int64_t> retry_after_s(const http::Response& answer);

// Returns whether the request has caused the error, so that it would fail at any worker. Such an error
// names a field ("param"), or is the client's timeout.
bool is_the_requests_own(std::string_view body);

}  // namespace octavo::fleet
