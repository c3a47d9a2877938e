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
  boost::json::object response;     // the response object without id, created_at and status
  boost::json::array conversation;  // all items before this response
  ResponsesTools tools{};           // tools whose calls differ from those of a chat
  ResponseStore* store = nullptr;   // store in which the response is stored, or null
  // store of the conversation to which the response is added, or null
  ConversationStore* conversations = nullptr;
  std::string conversation_id{};  // id of the conversation to which the response is added; "": none
  std::size_t known_items = 0;    // number of items at the beginning of `conversation` that the store already
                                  // has
  bool background = false;
  // whether the response contains input_messages and output_messages; needs return_token_ids
  bool messages = false;
};

boost::json::object response_usage(const Usage& usage);
boost::json::object pending_response(const boost::json::object& response, const ReplyOptions& options);

std::unique_ptr<Reply> responses_reply(const Tokenizer& tokenizer, ReplyOptions options,
                                       ResponsesOptions responses);

}  // namespace octavo::openai
