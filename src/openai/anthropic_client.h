// Changes responses for Anthropic's clients: adds the request id, and converts errors and models to
// Anthropic's format.
#pragma once

#include <string>
#include <string_view>

#include "http/exchange.h"
#include "http/message.h"

namespace octavo::anthropic {

// Returns whether the client speaks Anthropic's protocol. At /v1/models, the header
// anthropic-version decides; on all other routes, the path does. `path` does not include the
// server's prefix.
bool is_client(std::string_view path, const http::Headers& headers);

// Adds the header `request-id`. Converts the body of an error to Anthropic's format, with the field
// `request_id`. Converts OpenAI's model objects to Anthropic's {"type": "model", "id", "display_name",
// "created_at"}. Leaves all other bodies unchanged.
void amend(http::Response& response, std::string_view path, std::string_view request_id);

// Applies amend() to the response of a request for which is_client() returns true. Also sets the
// request's X-Request-Id to `request_id`, which must be plain ASCII. Call this before the request
// is handled.
void amend_answer(http::Exchange& exchange, std::string_view path, std::string request_id);

}  // namespace octavo::anthropic
