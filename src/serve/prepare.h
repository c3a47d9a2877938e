// From a parsed request to the engine's: rendering, tokenising, and checks that need both.
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

// Errors name the field: a prompt that is empty, does not fit the context, or is no text; max_tokens beyond
// it; more answers or log-probabilities than a client may ever have.
Result<GenerationPlan> prepare_chat(const Service& service, openai::ChatRequest request);
// For another protocol: the prefix of its ids, and the maker of its replies.
using ReplyMaker = std::function<std::unique_ptr<openai::Reply>(const Tokenizer&, openai::ReplyOptions)>;
Result<GenerationPlan> prepare_chat_as(const Service& service, openai::ChatRequest request,
                                       std::string_view id_prefix, const ReplyMaker& reply);
// Media of a generation's prompts.
struct PromptMedia {
  std::vector<MediaPart> images{}, sources{};  // as in GenerationPlan
};
// A plan for prompts that fit the context. Errors: as above.
Result<GenerationPlan> plan_generation(const Service& service, openai::GenerationRequest request,
                                       std::vector<std::vector<TokenId>> prompts, PromptMedia media,
                                       std::string_view id_prefix, const ReplyMaker& reply);

Result<GenerationPlan> prepare_completion(const Service& service, openai::CompletionRequest request);
Result<GenerationPlan> prepare_completion_as(const Service& service, openai::CompletionRequest request,
                                             std::string_view id_prefix, const ReplyMaker& reply);

// The conversation as ids, with the images in it: also what /tokenize answers.
struct ChatTokens {
  std::vector<TokenId> ids;
  std::vector<MediaPart> images;
};
Result<ChatTokens> chat_tokens(const Service& service, const openai::ChatPrompt& prompt,
                                         bool add_special_tokens, std::size_t bytes_max);

// The most bytes of text that could still fit the context. With truncation, what the tokenizer takes.
std::size_t prompt_bytes_max(const Service& service, bool truncated);

}  // namespace octavo
