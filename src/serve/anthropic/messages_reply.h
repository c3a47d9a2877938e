// Replies and errors of Anthropic's /v1/messages.
#pragma once

#include <memory>

#include "base/error.h"
#include "http/message.h"
#include "serve/openai/reply.h"

namespace octavo::anthropic {

std::unique_ptr<openai::Reply> messages_reply(const Tokenizer& tokenizer, openai::ReplyOptions options);

// {"type": "error", "error": {"type", "message"}}
http::Response error_response(const Error& error);

}  // namespace octavo::anthropic
