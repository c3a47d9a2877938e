// The body of Anthropic's /v1/messages, turned into a chat.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "serve/openai/chat_request.h"

namespace octavo::anthropic {

// Errors name the fields of this protocol where it differs from chats.
Result<openai::ChatRequest> parse_messages_request(const boost::json::object& body,
                                                   const openai::RequestRules& rules);

// The same without max_tokens, of which nothing is generated: /v1/messages/count_tokens.
Result<openai::ChatRequest> parse_count_tokens_request(const boost::json::object& body,
                                                       const openai::RequestRules& rules);

}  // namespace octavo::anthropic
