// Answers for Anthropic's clients: the request's id, and errors and models in Anthropic's form.
// form.
#pragma once

#include <string>
#include <string_view>

#include "http/exchange.h"
#include "http/message.h"

namespace octavo::anthropic {

// Whether the client speaks Anthropic's protocol: by the path, and at /v1/models by the header
// anthropic-version. path: without the server's prefix.
bool is_client(std::string_view path, const http::Headers& headers);

// Adds the header `request-id`. Errors get Anthropic's form and the field `request_id`. OpenAI's cards of
// models become Anthropic's: {"type": "model", "id", "display_name", "created_at"}. Other bodies stay.
void amend(http::Response& response, std::string_view path, std::string_view request_id);

// Amends the answer of a request that is_client() knows. The id becomes the request's X-Request-Id. Only
// before the request is handled. request_id: plain ASCII.
void amend_answer(http::Exchange& exchange, std::string_view path, std::string request_id);

}  // namespace octavo::anthropic
