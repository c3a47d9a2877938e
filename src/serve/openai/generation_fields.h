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
#include "request/session.h"
#include "serve/adapter_names.h"
#include "serve/openai/reasoning.h"
#include "serve/openai/sampling_reader.h"
#include "serve/openai/structured_output.h"
#include "serve/openai/tool_choice.h"

namespace octavo::openai {

struct RequestRules {
  std::vector<std::string> model_names;  // names of the served model; replies contain the first one
  std::shared_ptr<AdapterNames> adapters =
      std::make_shared<AdapterNames>();  // LoRA adapters that requests can name as their model
  SamplingLimits limits;
  GenerationDefaults defaults;
  int max_model_len = 0;
  int prompts_max = 1024;  // maximum number of prompts in a completion request
  bool priority_scheduling = false;
  bool force_include_usage = false;
  bool return_tokens_as_token_ids = false;  // default of the request's field of this name
  int stream_interval = 1;                  // lower limit of StreamOptions::interval
  bool trust_chat_templates = false;        // whether requests may contain a chat template
  boost::json::object default_template_kwargs{};
  // dialect for tool_choice `auto`; null: `auto` is disabled
  const grammar::ToolDialect* tool_dialect = nullptr;
  std::vector<std::string> special_tokens{};  // texts of the vocabulary's special tokens
  int images_max = 0;                         // maximum number of images per prompt; 0: not supported
  int videos_max = 0;                         // maximum number of videos per prompt; 0: not supported
  int sounds_max = 0;                         // maximum number of audios per prompt; 0: not supported
  bool exclude_unused_tools = false;          // whether tool_choice `none` removes the tools from the prompt
  std::optional<ReasoningRule> reasoning{};   // nullopt: reasoning is not separated from the text
  // Options of grammars for JSON answers. OpenAI promises that members are in the order of the schema.
  grammar::JsonOptions json{.any_order = false};

  void take_limits(const EngineInfo& engine);
};

struct BeamOptions {
  bool enabled = false;  // whether to run a beam search with sampling.n beams, instead of n samples
  double length_penalty = 1;
};

struct StreamOptions {
  bool enabled = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool include_progress = false;  // whether to report the progress of the prompt
  int interval = 1;               // number of tokens in each chunk, except the first and the last chunk
  // Output tokens that the client already has. The stream continues after them. nullopt: a new stream.
  std::optional<std::vector<TokenId>> resume{};
};

struct PromptOptions {
  bool add_special_tokens = true;
  // true: truncate_prompt_tokens keeps the first tokens; false: the last ones
  bool truncate_at_end = false;
  // token ids that replace the request's prompt, unless the request has echo or media
  std::vector<TokenId> forwarded{};
};

// Optional parts of the reply.
struct ReportOptions {
  bool token_ids = false;
  bool tokens_as_token_ids = false;
  bool prompt_logprobs = false;
  bool cost = false;  // whether the reply has usage.octavo
};

struct ThinkingOptions {
  bool included = true;
  bool off = false;  // whether the request sets enable_thinking = false for the chat template
  std::optional<int> token_budget;
};

struct GenerationRequest {
  SamplingParams sampling;  // parameters that validated() has checked
  BeamOptions beam;
  StreamOptions stream;
  PromptOptions prompt;
  ReportOptions report;
  ThinkingOptions thinking;
  std::string model;
  std::string adapter;  // name of the LoRA adapter; "": no adapter
  std::string request_id;
  std::string cache_salt;
  std::int64_t priority = 0;
  double timeout_s = 0;                          // seconds since the request arrived; 0: no limit
  std::optional<grammar::GrammarSource> output;  // grammar of the answers; nullopt: no grammar
  ToolUse tools;
  std::optional<KvTransferParams> kv_transfer;
  // Session of the request. A header may add the session's name later. Without a name, plan_generation()
  // resets this field.
  std::optional<SessionUse> session;
  std::string derived_session;  // name of the session if neither a field nor a header names it; "": no name
  std::string_view limit_field = {};  // name of the field that limits the output tokens; "": a default limits
                                      // them
  std::vector<std::string> unknown_fields;
};

// Reads the shared fields into `out`, except the limit of output tokens and logprobs, whose fields differ in
// the two routes.
Result<> read_shared_fields(Fields& fields, const RequestRules& rules, GenerationRequest& out);

// Reads use_beam_search and length_penalty. Without a beam search, length_penalty has no effect, as in vLLM.
Result<> read_beam_search(Fields& fields, GenerationRequest& out);

// Checks a timeout in seconds, from the field `timeout` or the header X-Request-Timeout.
Result<double> checked_timeout(double seconds);

// Checks rules that involve several fields. Call it after all fields are read.
Result<> finish_reading(const Fields& fields, const RequestRules& rules, GenerationRequest& out);

// If the result is an error on `field`, replaces the field's name by `name`, which the client used.
template <class T>
Result<T> reported_as(Result<T> result, std::string_view field, std::string_view name) {
  if (!result && result.error().field == field) result.error().field = name;
  return result;
}

// Replaces "response_format" in errors by `name`, for protocols in which the field has another name. Also
// changes errors that the grammar compiler reports later.
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

Error unknown_model(std::string_view name, const RequestRules& rules);

// Returns the adapter that the request names as its model, or "" for the base model. Returns not_found for
// other names.
Result<std::string> read_model(Fields& fields, const RequestRules& rules);

}  // namespace octavo::openai
