// Decides whether the worker or the request has caused an error response.
#pragma once

#include <cstdint>
#include <optional>

#include "http/message.h"

namespace octavo::fleet {

// Returns whether a different worker may succeed after a worker has responded with this status.
bool worth_a_retry(int status);

bool is_backpressure(int status);

// Returns the value of Retry-After in seconds, rounded up. Returns nullopt if the header is missing, or is
// neither a number nor an HTTP date.
std::optional<std::int64_t> retry_after_s(const http::Response& answer);

// Returns whether the request itself has caused the error, so that it would fail at any worker. Such an error
// names a field ("param"), or is the timeout that the client has set.
bool is_the_requests_own(std::string_view body);

// Returns whether the body of a 404 says that the worker does not have the model. Another worker may have it.
// All known engines write the model's name in quotation marks.
bool lacks_model(std::string_view body, std::string_view model);

}  // namespace octavo::fleet
