// Converts the body of Anthropic's /v1/messages to a chat request.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "serve/openai/chat_request.h"

namespace octavo::anthropic {

// Errors contain the field names of Anthropic's API.
Result<openai::ChatRequest> parse_messages_request(const boost::json::object& body,
                                                   const openai::RequestRules& rules);

// Converts a body of /v1/messages/count_tokens in the same way. The body needs no max_tokens.
Result<openai::ChatRequest> parse_count_tokens_request(const boost::json::object& body,
                                                       const openai::RequestRules& rules);

}  // namespace octavo::anthropic
