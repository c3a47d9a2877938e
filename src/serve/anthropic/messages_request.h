// Converts the body of Anthropic's /v1/messages to a chat.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "serve/openai/chat_request.h"

namespace octavo::anthropic {

// Errors name the fields of this protocol.
Result<openai::ChatRequest> parse_messages_request(const boost::json::object& body,
                                                   const openai::RequestRules& rules);

// As above, but max_tokens is not needed: /v1/messages/count_tokens generates nothing.
Result<openai::ChatRequest> parse_count_tokens_request(const boost::json::object& body,
                                                       const openai::RequestRules& rules);

}  // namespace octavo::anthropic
