// Converts a parsed request to a GenerationPlan: renders the chat template, tokenises the prompt, and
// checks the limits that depend on the number of prompt tokens.
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

// Returns an error with the field's name if the prompt is empty, too long or not valid text, if max_tokens
// exceeds the context, or if the answers or log-probabilities exceed one client's limit.
Result<GenerationPlan> prepare_chat(const Service& service, openai::ChatRequest request);
// Function that makes the reply in the format of a protocol.
using ReplyMaker = std::function<std::unique_ptr<openai::Reply>(const Tokenizer&, openai::ReplyOptions)>;
Result<GenerationPlan> prepare_chat_as(const Service& service, openai::ChatRequest request,
                                       std::string_view id_prefix, const ReplyMaker& reply);
struct PromptMedia {
  std::vector<MediaPart> images{}, sources{};  // see GenerationPlan
};
// Makes a plan for prompts that fit the context. Returns the errors of prepare_chat().
Result<GenerationPlan> plan_generation(const Service& service, openai::GenerationRequest request,
                                       std::vector<std::vector<TokenId>> prompts, PromptMedia media,
                                       std::string_view id_prefix, const ReplyMaker& reply);

Result<GenerationPlan> prepare_completion(const Service& service, openai::CompletionRequest request);
Result<GenerationPlan> prepare_completion_as(const Service& service, openai::CompletionRequest request,
                                             std::string_view id_prefix, const ReplyMaker& reply);

// The token ids and images of a conversation. /tokenize also uses them.
struct ChatTokens {
  std::vector<TokenId> ids;
  std::vector<MediaPart> images;
};
Result<ChatTokens> chat_tokens(const Service& service, const openai::ChatPrompt& prompt,
                                         bool add_special_tokens, std::size_t bytes_max);

// Returns the maximum number of bytes of a text that can fit the context. truncated: the request truncates
// its prompt, so the result is the maximum number of bytes to tokenise.
std::size_t prompt_bytes_max(const Service& service, bool truncated);

}  // namespace octavo
