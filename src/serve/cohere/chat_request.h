// Converts the body of Cohere's /v2/chat to the body of a chat request.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "serve/openai/chat_request.h"

namespace octavo::cohere {

struct ConvertedChat {
  boost::json::object body;  // the body of /v1/chat/completions with the same meaning
  openai::ChatRequest request;
};

// Errors contain the field names of Cohere's API.
Result<ConvertedChat> parse_chat_request(const boost::json::object& body, const openai::RequestRules& rules);

}  // namespace octavo::cohere
