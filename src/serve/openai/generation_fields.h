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

struct RequestRules {
  std::vector<std::string> model_names;  // replies contain the first one
  std::shared_ptr<AdapterNames> adapters =
      std::make_shared<AdapterNames>();  // other models (adapters) that requests can name
  SamplingLimits limits;
  GenerationDefaults defaults;
  int max_model_len = 0;
  int prompts_max = 1024;  // maximum number of prompts in a completion request
  bool priority_scheduling = false;
  bool force_include_usage = false;
  bool return_tokens_as_token_ids = false;  // default of the request's field
  int stream_interval = 1;                  // minimum for all streams
  bool trust_chat_templates = false;        // whether requests may bring their own chat template
  boost::json::object default_template_kwargs{};
  const grammar::ToolDialect* tool_dialect = nullptr;  // dialect for tool_choice `auto`; null: not enabled
  std::vector<std::string> special_tokens{};           // texts of the vocabulary's special tokens
  int images_max = 0;                                  // maximum number in one prompt; 0: not supported
  int videos_max = 0;                                  // maximum number in one prompt; 0: not supported
  int sounds_max = 0;                                  // maximum number in one prompt; 0: not supported
  bool exclude_unused_tools = false;                   // with tool_choice `none`, leave the tools out of the
                                                       // prompt
  std::optional<ReasoningRule> reasoning{};            // nullopt: thoughts are not separated from the text
  // Options of grammars for JSON answers. OpenAI promises that members have the order of the schema.
  grammar::JsonOptions json{.any_order = false};

  // Takes over the engine's limits.
  void take_limits(const EngineInfo& engine);
};

struct BeamOptions {
  bool enabled = false;  // beam search with sampling.n beams, instead of n samples
  double length_penalty = 1;
};

struct StreamOptions {
  bool enabled = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool include_progress = false;  // progress of the prompt's computation
  int interval = 1;               // number of tokens in a chunk, except for the first and the last chunk
  // Output tokens that the client already has. The stream continues after them.
  std::optional<std::vector<TokenId>> resume{};
};

struct PromptOptions {
  bool add_special_tokens = true;
  bool truncate_at_end = false;      // truncate_prompt_tokens keeps the first tokens instead of the last ones
  std::vector<TokenId> forwarded{};  // used instead of the request's prompt, except with echo or media
};

// Parts of the reply besides the text.
struct ReportOptions {
  bool token_ids = false;
  bool tokens_as_token_ids = false;
  bool prompt_logprobs = false;
  bool cost = false;  // usage.octavo
};

struct ThinkingOptions {
  bool included = true;             // the reply has the thoughts
  bool off = false;                 // the request sets enable_thinking = false for the chat template
  std::optional<int> token_budget;  // maximum number of tokens of thoughts
};

struct GenerationRequest {
  SamplingParams sampling;  // validated
  BeamOptions beam;
  StreamOptions stream;
  PromptOptions prompt;
  ReportOptions report;
  ThinkingOptions thinking;
  std::string model;    // model name for replies
  std::string adapter;  // name of the LoRA adapter; "": none
  std::string request_id;
  std::string cache_salt;
  std::int64_t priority = 0;
  double timeout_s = 0;                          // maximum time since arrival in seconds; 0: no limit
  std::optional<grammar::GrammarSource> output;  // grammar of the answers; nullopt: no constraint
  ToolUse tools;
  std::optional<KvTransferParams> kv_transfer;
  std::string_view limit_field = {};  // field that limited the output tokens; "": a default did
  std::vector<std::string> unknown_fields;
};

// Reads the shared fields into `out`. The two endpoints name max_tokens and logprobs differently, so these
// are not read.
Result<> read_shared_fields(Fields& fields, const RequestRules& rules, GenerationRequest& out);

// Checks a timeout in seconds, from the field `timeout` or the header X-Request-Timeout.
Result<double> checked_timeout(double seconds);

// Checks rules that involve several fields, after all fields were read.
Result<> finish_reading(const Fields& fields, const RequestRules& rules, GenerationRequest& out);

// Returns the result. In an error about `field`, replaces the field's name by the name that the client used.
template <class T>
Result<T> reported_as(Result<T> result, std::string_view field, std::string_view name) {
  if (!result && result.error().field == field) result.error().field = name;
  return result;
}

// As above, for protocols with another field instead of response_format. Also changes errors that the
// grammar's compiler reports later.
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

// The adapter that the request names as its model; "": it names the base model or none. Errors: not_found.
Result<std::string> read_model(Fields& fields, const RequestRules& rules);

}  // namespace octavo::openai
