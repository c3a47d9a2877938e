// The engine requests of one client request, and all decisions about its answer. The server, the terminal and
// the batch runner use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accounts/accounts.h"
#include "openai/errors.h"
#include "request/request.h"
#include "serve/admission.h"
#include "serve/openai/generation_fields.h"
#include "serve/openai/output_processor.h"
#include "serve/openai/reply.h"
#include "serve/tracing.h"

namespace octavo {

// Estimated bytes of one reported log-probability: the engine's entry and its text in the reply.
inline constexpr std::int64_t kLogprobBytes = 384;

// The tenant that a request is charged to, and whether the reply has a header with the cost.
struct RequestAccount {
  std::string tenant{kAnonymous};  // tenant label in metrics and logs
  std::string path{};
  bool in_header = false;
  std::string cost_id{};          // value of kCostIdHeader; "": no router reads the cost later
  UnreadCosts::Open cost_open{};  // reservation of cost_id until the request has ended
};

struct GenerationPlan {
  openai::GenerationRequest request;
  std::vector<std::vector<TokenId>> prompts;  // token ids; each prompt fits the context
  std::vector<MediaPart> images{};            // images of the prompt; empty if there are several prompts
  std::vector<MediaPart> sources{};           // empty, or for each prompt the input for cross attention or
                                              // the prompt's embeddings
  std::vector<std::string> echo_texts;        // with echo: the text at the beginning of each answer
  bool prompt_only = false;                   // true: the reply has only the prompts, no output tokens
  StopSplitter stops;
  std::optional<openai::Thinking> thinking{};  // for chats with reasoning models
  // budget of reasoning tokens; reasoning tokens that the prompts already contain are not subtracted yet
  std::optional<ThinkingBudget> thinking_budget{};
  std::unique_ptr<openai::Reply> reply;
  // makes the response if an error occurs before the reply begins
  http::Response (*error_response)(const Error&) = openai::error_response;
  std::int64_t arrived_us = 0;
  Price price{};  // estimated resources of all answers
  std::string client{};
  RequestAccount account{};
  std::optional<TraceContext> trace{};
  std::optional<int> engine{};  // index of the engine; nullopt: any engine
  bool background = false;

  // Returns the client's deadline as a time of now_us(), or 0 if there is no deadline.
  std::int64_t ends_us() const {
    return request.timeout_s > 0 ? arrived_us + static_cast<std::int64_t>(request.timeout_s * 1e6) : 0;
  }

  // Returns the number of prompt tokens that `usage` reports, including the tokens of the prompt's source.
  int prompt_tokens(std::size_t prompt) const {
    return static_cast<int>(prompts[prompt].size()) + (sources.empty() ? 0 : sources[prompt].columns);
  }
};

// Makes the engine's request for one prompt of the plan. Moves the prompt out of the plan. eos_ids: the
// model's end-of-text tokens.
Request make_request(GenerationPlan& plan, std::size_t prompt, std::vector<TokenId> eos_ids);

}  // namespace octavo
