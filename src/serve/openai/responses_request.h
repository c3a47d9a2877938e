// Converts the body of /v1/responses to a chat.
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
  boost::json::object response;     // the response object, without id, status and output
  boost::json::array conversation;  // items of earlier responses, then all items of the input
  std::string conversation_id{};    // id of the conversation to which new items and the output are added; "":
                                    // none
  std::size_t known_items = 0;      // number of items of `conversation` from before this request
  ResponsesTools tools{};           // tools whose calls differ from a chat's
  bool store = true;
  bool background = false;  // answer the request at once, and generate the response afterwards
  bool messages = false;    // the response contains the prompt and the output as the model reads and writes
                            // them
};

// Reads the items from before the request: by `previous_response_id`, or by `conversation` (an id, or
// {"id"}).
Result<> read_history(Fields& fields, const ResponseStore& stored, ResponsesRequest& request);

// Errors name the fields of this protocol.
Result<ResponsesRequest> parse_responses_request(const boost::json::object& body, const RequestRules& rules,
                                                 const ResponseStore& stored);

}  // namespace octavo::openai
