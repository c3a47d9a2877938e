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
#include "serve/openai/structured_output.h"
#include "serve/openai/tool_choice.h"

namespace octavo::openai {

// What a request gets for sampling fields that it leaves out: the model's generation_config.json, as far as
// it says.
struct GenerationDefaults {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<int> max_tokens;  // max_new_tokens: also the most that a request may ask for
};

// What the server allows.
struct RequestRules {
  std::vector<std::string> model_names;  // the first one is written into replies
  std::shared_ptr<AdapterNames> adapters = std::make_shared<AdapterNames>();  // other models to ask for
  SamplingLimits limits;
  GenerationDefaults defaults;
  int max_model_len = 0;
  int prompts_max = 1024;  // of one completion request
  bool priority_scheduling = false;
  bool force_include_usage = false;
  bool return_tokens_as_token_ids = false;  // unless a request says otherwise
  int stream_interval = 1;                  // the least of any stream
  bool trust_chat_templates = false;        // of requests
  boost::json::object default_template_kwargs{};
  const grammar::ToolDialect* tool_dialect = nullptr;  // of tool_choice `auto`; null: it is not enabled
  std::vector<std::string> special_tokens{};           // of the vocabulary, as they are written
  int images_max = 0;                                  // of one prompt; 0: the model does not see
  int videos_max = 0;                                  // of one prompt; 0: it sees none
  int sounds_max = 0;                                  // of one prompt; 0: it does not hear in prompts
  bool exclude_unused_tools = false;                   // from the prompt, with tool_choice `none`
  std::optional<ReasoningRule> reasoning{};            // nothing: thoughts are text like any other
  grammar::JsonOptions json{};                         // of answers that must be JSON

  // What the engine says of itself.
  void take_limits(const EngineInfo& engine);
};

struct GenerationRequest {
  SamplingParams sampling;  // validated
  bool beam_search = false;  // of sampling.n beams, in place of n draws
  double length_penalty = 1;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  int stream_interval = 1;  // tokens that a stream's chunk holds, but for its first and last ones
  // The answer's tokens that the client of a stream has already: it goes on behind them.
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
  std::optional<grammar::GrammarSource> output;  // what the answers must look like; nothing: they are free
  ToolUse tools;
  std::optional<KvTransferParams> kv_transfer;
  std::vector<TokenId> forwarded_prompt;  // replaces the request's own prompt, except with echo or media
  bool include_reasoning = true;
  bool reasoning_off = false;     // the chat template was told so
  std::optional<int> thinking_token_budget;  // tokens of thoughts, at most
  double timeout_s = 0;           // from its arrival; 0: none
  bool max_tokens_given = false;  // by the request, not by a default
  std::vector<std::string> unknown_fields;
};

// The fields that shape the distribution: what a request leaves out is as the model's makers want it, or the
// temperature as the endpoint has it where it has a default of its own.
Result<> read_shape(Fields& fields, const GenerationDefaults& defaults, SamplingParams& out,
                    std::optional<double> temperature = std::nullopt);

// Reads the shared fields into `out`, except those that the two endpoints spell differently (max_tokens,
// logprobs).
Result<> read_shared_fields(Fields& fields, const RequestRules& rules, GenerationRequest& out);

// The request's `timeout` in seconds, or the header X-Request-Timeout's.
Result<double> checked_timeout(double seconds);

// To be called when every field is read: applies the rules between fields.
Result<> finish_reading(const Fields& fields, const RequestRules& rules, GenerationRequest& out);

// The adapter that the request names as its model; "": it names the model itself, or none. Errors: not_found.
Result<std::string> read_model(Fields& fields, const RequestRules& rules);

}  // namespace octavo::openai
