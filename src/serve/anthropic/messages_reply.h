// Replies of Anthropic's /v1/messages.
#pragma once

#include <memory>

#include "serve/openai/reply.h"

namespace octavo::anthropic {

std::unique_ptr<openai::Reply> messages_reply(const Tokenizer& tokenizer, openai::ReplyOptions options);

}  // namespace octavo::anthropic
