// Converts the body of /v1/responses to a chat.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <string>

#include "base/error.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/response_store.h"

namespace octavo::openai {

struct ResponsesRequest {
  ChatRequest chat;
  boost::json::object response;     // as it is shown before it has an id, a state and output
  boost::json::array conversation;  // all items of input, with those of the responses before
  std::string conversation_id{};    // its new items and the output are added to this conversation; "": none
  std::size_t known_items = 0;      // items of `conversation` from before this request
  bool store = true;
  bool background = false;  // answered at once, made afterwards
  bool messages = false;    // the response shows the prompt and the output as the model sees them
};

// Errors name the fields of this protocol where it differs from chats.
Result<ResponsesRequest> parse_responses_request(const boost::json::object& body, const RequestRules& rules,
                                                 const ResponseStore& stored);

}  // namespace octavo::openai
