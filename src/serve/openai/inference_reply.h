// Replies of /inference/v1/generate: token ids without text.
#pragma once

#include <memory>

#include "serve/openai/reply.h"

namespace octavo::openai {

std::unique_ptr<Reply> inference_reply(const Tokenizer& tokenizer, ReplyOptions options);

}  // namespace octavo::openai
