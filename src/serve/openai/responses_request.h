// Converts the body of /v1/responses to a chat request.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <string>

#include "base/error.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/response_store.h"
#include "serve/openai/responses_tools.h"

namespace octavo::openai {

struct ResponsesRequest {
  ChatRequest chat;
  boost::json::object response;     // the response object without id, status and output
  boost::json::array conversation;  // items of earlier responses, then all items of the input
  // id of the conversation to which the new items and the output are added; "": none
  std::string conversation_id{};
  std::size_t known_items = 0;  // number of items at the beginning of `conversation` that existed before this
                                // request
  ResponsesTools tools{};       // tools whose calls differ from those of a chat
  bool store = true;
  bool background = false;  // whether to answer the request at once and generate the response afterwards
  // whether the response contains the prompt and the output as the model reads and writes them
  bool messages = false;
};

// Reads the items of earlier turns, which `previous_response_id` or `conversation` (an id or {"id"}) names.
Result<> read_history(Fields& fields, const ResponseStore& stored, ResponsesRequest& request);

// Errors contain the field names of /v1/responses.
Result<ResponsesRequest> parse_responses_request(const boost::json::object& body, const RequestRules& rules,
                                                 const ResponseStore& stored);

}  // namespace octavo::openai
