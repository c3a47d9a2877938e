// The fields that /v1/completions and /v1/chat/completions share: OpenAI's and vLLM's sampling parameters,
// streaming, cache and priority.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "openai/request_fields.h"
#include "request/engine_info.h"
#include "request/kv_transfer.h"
#include "request/sampling_params.h"
#include "serve/adapter_names.h"
#include "serve/openai/reasoning.h"
#include "serve/openai/sampling_reader.h"
#include "serve/openai/structured_output.h"
#include "serve/openai/tool_choice.h"

namespace octavo::openai {

// The server's rules for requests.
struct RequestRules {
  std::vector<std::string> model_names;  // replies have the first one
  std::shared_ptr<AdapterNames> adapters =
      std::make_shared<AdapterNames>();  // other models that requests can name
  SamplingLimits limits;
  GenerationDefaults defaults;
  int max_model_len = 0;
  int prompts_max = 1024;  // of one completion request
  bool priority_scheduling = false;
  bool force_include_usage = false;
  bool return_tokens_as_token_ids = false;  // unless a request says otherwise
  int stream_interval = 1;                  // minimum of all streams
  bool trust_chat_templates = false;        // of requests
  boost::json::object default_template_kwargs{};
  const grammar::ToolDialect* tool_dialect = nullptr;  // of tool_choice `auto`; null if not enabled
  std::vector<std::string> special_tokens{};           // of the vocabulary, as they are written
  int images_max = 0;                                  // maximum number in one prompt; 0: not supported
  int videos_max = 0;                                  // maximum number in one prompt; 0: not supported
  int sounds_max = 0;                                  // maximum number in one prompt; 0: not supported
  bool exclude_unused_tools = false;                   // from the prompt, with tool_choice `none`
  std::optional<ReasoningRule> reasoning{};            // nullopt: thoughts are text
  // Of answers that must be JSON. OpenAI promises the schema's order of members.
  grammar::JsonOptions json{.any_order = false};

  // Takes the engine's limits.
  void take_limits(const EngineInfo& engine);
};

// What a stream reports besides the answer.
struct StreamOptions {
  bool include_usage = false;
  bool continuous_usage = false;
  bool include_progress = false;  // of the prompt
};

struct GenerationRequest {
  SamplingParams sampling;  // validated
  bool beam_search = false;  // of sampling.n beams, in place of n draws
  double length_penalty = 1;
  bool stream = false;
  StreamOptions stream_options;
  int stream_interval = 1;  // tokens in a chunk of a stream, except the first and the last chunk
  // Output tokens that the client already has; the stream continues after them.
  std::optional<std::vector<TokenId>> resume;
  std::int64_t priority = 0;
  std::string model;    // as replies name it
  std::string adapter;  // "": the model alone
  std::string cache_salt;
  std::string request_id;
  bool add_special_tokens = true;
  bool truncate_at_end = false;  // truncate_prompt_tokens keeps the first tokens instead of the last
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  bool return_prompt_logprobs = false;
  std::optional<grammar::GrammarSource> output;  // grammar of the answers; nullopt: they are free
  ToolUse tools;
  std::optional<KvTransferParams> kv_transfer;
  std::vector<TokenId> forwarded_prompt;  // replaces the request's own prompt, except with echo or media
  bool include_reasoning = true;
  bool reasoning_off = false;                // the chat template got enable_thinking = false
  std::optional<int> thinking_token_budget;  // maximum number of tokens of thoughts
  double timeout_s = 0;                      // limit on the time since arrival; 0 disables it
  std::string_view limit_field = {};  // of the request, which limits the output tokens; "": a default does
  std::vector<std::string> unknown_fields;
};

// Reads the shared fields into `out`, except those that the two endpoints spell differently (max_tokens,
// logprobs).
Result<> read_shared_fields(Fields& fields, const RequestRules& rules, GenerationRequest& out);

// The request's `timeout` in seconds, or that of the header X-Request-Timeout.
Result<double> checked_timeout(double seconds);

// Checks rules between fields, after all fields were read.
Result<> finish_reading(const Fields& fields, const RequestRules& rules, GenerationRequest& out);

// Returns the same result; an error about `field` gets the name that the client used.
template <class T>
Result<T> reported_as(Result<T> result, std::string_view field, std::string_view name) {
  if (!result && result.error().field == field) result.error().field = name;
  return result;
}

// The same for a request whose protocol has another field for response_format; also for errors that the
// grammar's compiler finds later.
template <class Request>
Result<Request> format_reported_as(Result<Request> result, std::string_view name) {
  const auto rename = [&](std::string& field) {
    for (const std::string_view own : {"response_format.json_schema", "response_format"})
      if (field.starts_with(own)) field.replace(0, own.size(), name);
  };
  if (!result) rename(result.error().field);
  if (result && result->generation.output) rename(result->generation.output->field);
  return result;
}

// The 404 of a model that the server does not have.
Error unknown_model(std::string_view name, const RequestRules& rules);

// The adapter that the request names as its model; "": it names the model itself, or none. Errors: not_found.
Result<std::string> read_model(Fields& fields, const RequestRules& rules);

}  // namespace octavo::openai
