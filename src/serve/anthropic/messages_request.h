// Converts the body of Anthropic's /v1/messages to a chat request.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "serve/openai/chat_request.h"

namespace octavo::anthropic {

// Errors contain the field names of Anthropic's API.
Result<openai::ChatRequest> parse_messages_request(const boost::json::object& body,
                                                   const openai::RequestRules& rules);

// Does the same for /v1/messages/count_tokens, which does not need max_tokens because it generates nothing.
Result<openai::ChatRequest> parse_count_tokens_request(const boost::json::object& body,
                                                       const openai::RequestRules& rules);

}  // namespace octavo::anthropic
