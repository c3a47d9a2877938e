// Replies of /v1/responses.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <memory>
#include <string>

#include "serve/openai/reply.h"
#include "serve/openai/response_store.h"
#include "serve/openai/responses_tools.h"

namespace octavo::openai {

struct ResponsesOptions {
  boost::json::object response;     // without id, created_at and status
  boost::json::array conversation;  // all items before this response
  ResponsesTools tools{};           // tools whose calls differ from a chat's
  ResponseStore* store = nullptr;   // store that keeps the response, or null
  ConversationStore* conversations = nullptr;  // id of the conversation to which the response is added; "":
                                               // none
  std::string conversation_id{};               // the conversation that the response extends; "": none
  std::size_t known_items = 0;                 // number of items of `conversation` that the store already has
  bool background = false;
  bool messages = false;  // the response contains input_messages and output_messages; needs return_token_ids
};

boost::json::object pending_response(const boost::json::object& response, const ReplyOptions& options);

std::unique_ptr<Reply> responses_reply(const Tokenizer& tokenizer, ReplyOptions options,
                                       ResponsesOptions responses);

}  // namespace octavo::openai
