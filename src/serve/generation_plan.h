// Everything that the server decides about a generation before it submits the request, and that request. Used
// by the server, the terminal and the batch runner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "openai/errors.h"
#include "request/request.h"
#include "serve/admission.h"
#include "serve/openai/generation_fields.h"
#include "serve/openai/output_processor.h"
#include "serve/openai/reply.h"
#include "serve/tracing.h"

namespace octavo {

// Memory per reported log-probability: the engine's entry and its text in a reply.
inline constexpr std::int64_t kLogprobBytes = 384;

struct GenerationPlan {
  openai::GenerationRequest request;
  std::vector<std::vector<TokenId>> prompts;  // checked: they fit the context
  std::vector<MediaPart> images{};            // of the only prompt
  std::vector<MediaPart> sources{};           // of models with cross attention: one beside each prompt
  std::vector<std::string> echo_texts;        // with echo: the prefix of each answer
  bool prompt_only = false;                   // show no generated text
  StopSplitter stops;
  std::optional<openai::Thinking> thinking{};  // chat, of models that think
  std::optional<ThinkingBudget> thinking_budget{};  // before the tokens that prompts have spent
  std::unique_ptr<openai::Reply> reply;
  http::Response (*error_response)(const Error&) = openai::error_response;  // before the reply begins
  std::int64_t arrived_us = 0;
  Price price{};                        // estimate before it runs
  std::string client{};                 // tenant
  std::optional<TraceContext> trace{};  // of the request
  std::optional<int> engine{};          // index; nullopt: any
  bool background = false;              // no client waits for the reply

  // Time of the client's deadline, or 0.
  std::int64_t ends_us() const {
    return request.timeout_s > 0 ? arrived_us + static_cast<std::int64_t>(request.timeout_s * 1e6) : 0;
  }

  // As usage reports them: with those of the source.
  int prompt_tokens(std::size_t prompt) const {
    return static_cast<int>(prompts[prompt].size()) + (sources.empty() ? 0 : sources[prompt].columns);
  }
};

// The engine's request for one prompt of the plan; moves the prompt into it. eos_ids: the model's end tokens.
Request make_request(GenerationPlan& plan, std::size_t prompt, std::vector<TokenId> eos_ids);

}  // namespace octavo
