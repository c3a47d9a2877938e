// Replies in the format of Cohere's /v2/chat.
#pragma once

#include <memory>

#include "serve/openai/reply.h"

namespace octavo::cohere {

// plans: the reasoning of answers that call tools is `tool_plan`, as models without a thinking block have it.
std::unique_ptr<openai::Reply> chat_reply(const Tokenizer& tokenizer, openai::ReplyOptions options,
                                          bool plans);

}  // namespace octavo::cohere
