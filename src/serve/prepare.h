// Converts a parsed request to a plan: renders the chat template, tokenises, and checks limits that need
// both.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/generation_plan.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/completion_request.h"
#include "serve/service.h"

namespace octavo {

// Errors name the field: the prompt is empty, too long or not valid text; max_tokens exceeds the context; or
// the answers or log-probabilities exceed one client's limit.
Result<GenerationPlan> prepare_chat(const Service& service, openai::ChatRequest request);
// Makes the reply in the format of another protocol.
using ReplyMaker = std::function<std::unique_ptr<openai::Reply>(const Tokenizer&, openai::ReplyOptions)>;
Result<GenerationPlan> prepare_chat_as(const Service& service, openai::ChatRequest request,
                                       std::string_view id_prefix, const ReplyMaker& reply);
struct PromptMedia {
  std::vector<MediaPart> images{}, sources{};  // as in GenerationPlan
};
// Makes a plan for prompts that fit the context. Errors: as above.
Result<GenerationPlan> plan_generation(const Service& service, openai::GenerationRequest request,
                                       std::vector<std::vector<TokenId>> prompts, PromptMedia media,
                                       std::string_view id_prefix, const ReplyMaker& reply);

Result<GenerationPlan> prepare_completion(const Service& service, openai::CompletionRequest request);
Result<GenerationPlan> prepare_completion_as(const Service& service, openai::CompletionRequest request,
                                             std::string_view id_prefix, const ReplyMaker& reply);

// The tokens of a conversation and its images; also used for /tokenize.
struct ChatTokens {
  std::vector<TokenId> ids;
  std::vector<MediaPart> images;
};
Result<ChatTokens> chat_tokens(const Service& service, const openai::ChatPrompt& prompt,
                                         bool add_special_tokens, std::size_t bytes_max);

// Maximum bytes of a text that can fit the context. truncated: maximum bytes to tokenise.
std::size_t prompt_bytes_max(const Service& service, bool truncated);

}  // namespace octavo
