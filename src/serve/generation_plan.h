// A request for the engine, and all decisions of the server about its answer. Used by the server, the
// terminal and the batch runner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "openai/errors.h"
#include "request/request.h"
#include "serve/accounts.h"
#include "serve/admission.h"
#include "serve/openai/generation_fields.h"
#include "serve/openai/output_processor.h"
#include "serve/openai/reply.h"
#include "serve/tracing.h"

namespace octavo {

// Estimated memory of a reported log-probability: the engine's entry and the text in a reply.
inline constexpr std::int64_t kLogprobBytes = 384;

// Who pays for a request, and whether the reply has a header with the cost.
struct RequestAccount {
  std::string tenant{kAnonymous};  // label
  std::string path{};
  bool in_header = false;
};

struct GenerationPlan {
  openai::GenerationRequest request;
  std::vector<std::vector<TokenId>> prompts;  // checked: each prompt fits the context
  std::vector<MediaPart> images{};            // images of the prompt, if there is only one
  std::vector<MediaPart> sources{};           // one for each prompt: media for cross attention, or embeddings
  std::vector<std::string> echo_texts;        // with echo: the text that each answer begins with
  bool prompt_only = false;                   // output tokens are not shown
  StopSplitter stops;
  std::optional<openai::Thinking> thinking{};  // for chats with reasoning models
  std::optional<ThinkingBudget>
      thinking_budget{};  // budget, before the prompts' thought tokens are subtracted
  std::unique_ptr<openai::Reply> reply;
  // makes the response for an error before the reply begins
  http::Response (*error_response)(const Error&) = openai::error_response;
  std::int64_t arrived_us = 0;
  Price price{};                        // estimated price
  std::string client{};                 // tenant
  RequestAccount account{};
  std::optional<TraceContext> trace{};  // trace context of the request
  std::optional<int> engine{};          // index of the engine; nullopt: any
  bool background = false;              // no client waits for the reply

  // The client's deadline; 0: none.
  std::int64_t ends_us() const {
    return request.timeout_s > 0 ? arrived_us + static_cast<std::int64_t>(request.timeout_s * 1e6) : 0;
  }

  // Number of prompt tokens in `usage`, including the tokens of the source.
  int prompt_tokens(std::size_t prompt) const {
    return static_cast<int>(prompts[prompt].size()) + (sources.empty() ? 0 : sources[prompt].columns);
  }
};

// Makes the engine's request for one prompt of the plan, and moves the prompt into it. eos_ids: the model's
// end tokens.
Request make_request(GenerationPlan& plan, std::size_t prompt, std::vector<TokenId> eos_ids);

}  // namespace octavo
