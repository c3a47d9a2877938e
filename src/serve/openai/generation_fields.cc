#include "serve/openai/generation_fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "openai/ollama_names.h"
#include "serve/openai/kv_transfer_fields.h"
#include "serve/openai/session_fields.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

constexpr std::size_t kSaltBytesMax = 128;
constexpr std::size_t kRequestIdBytesMax = 256;
constexpr double kTimeoutMaxS = 86'400;
constexpr double kLengthPenaltyMax = 16;  // with this limit, (context length) ^ penalty is a finite double

Result<> read_streaming(Fields& f, const RequestRules& rules, GenerationRequest& out) {
  TRY_VOID(f.boolean("include_cost", out.report.cost));
  TRY_VOID(f.boolean("stream", out.stream.enabled));
  TRY_VOID(f.integer("stream_interval", out.stream.interval, 1));
  TRY_VOID(f.boolean("return_progress",
                     out.stream.include_progress));  // from llama.cpp; has no effect without `stream`
  if (f.any("resume_token_ids")) TRY_VOID(f.integers("resume_token_ids", out.stream.resume.emplace()));
  TRY(const json::object* options, f.object("stream_options"));
  if (options && !out.stream.enabled) return invalid("stream_options", "needs stream = true");
  if (options) {
    Fields o(*options, "stream_options.");
    TRY_VOID(o.boolean("include_usage", out.stream.include_usage));
    TRY_VOID(o.boolean("continuous_usage_stats", out.stream.continuous_usage));
    TRY_VOID(o.boolean("include_progress", out.stream.include_progress));
    TRY_VOID(o.boolean("include_cost", out.report.cost));
    out.stream.continuous_usage = out.stream.continuous_usage && out.stream.include_usage;
    o.accept({"include_obfuscation"});
    for (const std::string& name : o.unread()) out.unknown_fields.push_back(name);
  }
  if (out.report.cost) out.stream.include_usage = true;
  if (rules.force_include_usage) out.stream.include_usage = out.stream.continuous_usage = true;
  return {};
}

Result<> read_identity(Fields& f, const RequestRules& rules, GenerationRequest& out) {
  TRY_VOID(f.integer64("priority", out.priority));
  if (out.priority != 0 && !rules.priority_scheduling)
    return invalid("priority", "must be 0 unless the server runs with --scheduling-policy priority, got {}",
                   out.priority);
  TRY_VOID(f.text("request_id", out.request_id));
  if (out.request_id.size() > kRequestIdBytesMax)
    return invalid("request_id", "must have at most {} bytes, got {}", kRequestIdBytesMax,
                   out.request_id.size());
  if (f.any("timeout")) {
    double timeout = 0;
    TRY_VOID(f.number("timeout", timeout));
    TRY(out.timeout_s, checked_timeout(timeout));
  }
  if (!f.any("cache_salt")) return {};
  TRY_VOID(f.text("cache_salt", out.cache_salt));
  if (out.cache_salt.empty() || out.cache_salt.size() > kSaltBytesMax)
    return invalid("cache_salt", "must have 1 to {} bytes, got {}", kSaltBytesMax, out.cache_salt.size());
  if (out.cache_salt.find_first_of(std::string_view("@/\\\0", 4)) != std::string::npos)
    return invalid("cache_salt", "must not contain @, /, \\ or NUL");
  return {};
}

Result<> read_prompt_handling(Fields& f, GenerationRequest& out) {
  TRY_VOID(f.boolean("add_special_tokens", out.prompt.add_special_tokens));
  TRY_VOID(f.boolean("return_token_ids", out.report.token_ids));
  TRY_VOID(f.boolean("return_tokens_as_token_ids", out.report.tokens_as_token_ids));
  std::string side = "left";
  TRY_VOID(f.text("truncation_side", side));
  if (side != "left" && side != "right") return invalid("truncation_side", "must be \"left\" or \"right\"");
  out.prompt.truncate_at_end = side == "right";
  return {};
}

// Reads the reasoning budget. -1 means no limit.
Result<> read_thinking_budget(Fields& f, const RequestRules& rules, ThinkingOptions& thinking) {
  TRY_VOID(f.integer("thinking_token_budget", thinking.token_budget, -1));
  if (thinking.token_budget == -1) thinking.token_budget.reset();
  if (!thinking.token_budget) return {};
  if (!rules.reasoning)
    return invalid("thinking_token_budget", "needs a server that runs with --reasoning-parser");
  if (!rules.reasoning->tokens())
    return invalid("thinking_token_budget",
                   "needs a model that marks its reasoning with a begin and an end token; for gpt-oss, send "
                   "reasoning_effort");
  return {};
}

// Beam search uses the model's unmodified log-probabilities. Refuses fields that would have to change them.
// Ignores fields that only affect sampling, as vLLM does.
Result<> settle_beam_search(const RequestRules& rules, GenerationRequest& out) {
  SamplingParams& p = out.sampling;
  const std::pair<std::string_view, bool> bound[] = {
      {"presence_penalty", p.penalties.presence != 0},
      {"frequency_penalty", p.penalties.frequency != 0},
      {"repetition_penalty", p.penalties.repetition != 1},
      {"logit_bias", !p.tokens.logit_bias.empty()},
      {"allowed_token_ids", !p.tokens.allowed_token_ids.empty()},
      {"bad_words", !p.tokens.bad_words.empty()},
      {"stop", !p.stop.empty()},
      {"min_tokens", p.min_tokens != 0},
      {"repetition_detection", p.repetition_detection.max_pattern_size != 0},
      {"prompt_logprobs", p.logprobs.prompt.has_value()},
      {"prompt_logprob_token_ids", !p.logprobs.prompt_token_ids.empty()},
      {"logprob_token_ids", !p.logprobs.token_ids.empty()},
      {"thinking_token_budget", out.thinking.token_budget.has_value()},
      {"kv_transfer_params", out.kv_transfer.has_value()},
      {out.output ? std::string_view(out.output->field) : "", out.output.has_value()},
  };
  if (out.stream.enabled) return invalid("stream", "Streaming is not currently supported with beam search");
  for (const auto& [field, given] : bound)
    if (given) return invalid(field, "cannot be combined with use_beam_search");
  const int most = rules.limits.max_logprobs < 0 ? rules.limits.vocab_size : rules.limits.max_logprobs;
  if (p.n > most / 2)
    return invalid("n",
                   "needs 2 * n log-probabilities per position for a beam search, but at most {} are allowed "
                   "(--max-logprobs), got n = {}",
                   most, p.n);
  if (p.temperature >= 0 && p.greedy()) p.temperature = 1;
  return {};
}

Result<> refuse_unsupported(Fields& f) {
  TRY_VOID(f.refuse("ec_transfer_params", "transfer of the encoder cache is not supported"));
  TRY_VOID(f.refuse("logits_processors", "code in requests is not supported"));
  TRY_VOID(f.refuse("watermarking", "watermarking is not supported", false));
  TRY_VOID(f.refuse("return_token_offsets", "token offsets are not supported", false));
  TRY_VOID(f.refuse("return_mm_kwargs", "multimodal input is not supported", false));
  TRY_VOID(f.refuse("routed_experts_prompt_start", "routed experts are not reported", 0));
  return {};
}

Result<> check_resume(const GenerationRequest& request, const RequestRules& rules) {
  if (!request.stream.resume) return {};
  if (!request.stream.enabled) return invalid("resume_token_ids", "needs stream = true");
  if (request.sampling.n != 1)
    return invalid("resume_token_ids", "needs n = 1, got n = {}", request.sampling.n);
  for (const TokenId id : *request.stream.resume)
    if (id < 0 || id >= rules.limits.vocab_size)
      return invalid("resume_token_ids", "token id {} is out of vocabulary: must be in [0, {})", id,
                     rules.limits.vocab_size);
  return {};
}

}  // namespace

void RequestRules::take_limits(const EngineInfo& engine) {
  limits.vocab_size = engine.vocab_size;
  limits.max_logprobs = engine.max_logprobs;
  max_model_len = engine.max_model_len;
  limits.prompt_embeds = engine.prompt_embeds;
  priority_scheduling = engine.priorities;
}

Result<double> checked_timeout(double seconds) {
  if (seconds > 0 && seconds <= kTimeoutMaxS) return seconds;
  return invalid("timeout", "must be more than 0 and at most {} seconds, got {}", kTimeoutMaxS, seconds);
}

Error unknown_model(std::string_view name, const RequestRules& rules) {
  constexpr std::size_t kShownMax = 256;
  const std::string shown =
      name.size() > kShownMax ? fmt::format("of {} bytes", name.size()) : fmt::format("\"{}\"", name);
  return {.code = ErrorCode::not_found,
          .message = fmt::format("the model {} does not exist; this server has {} (all: GET /v1/models)",
                                 shown, fmt::join(rules.model_names, ", ")),
          .field = "model"};
}

Result<std::string> read_model(Fields& fields, const RequestRules& rules) {
  std::string model;
  TRY_VOID(fields.text("model", model));
  for (const std::string& name : {model, std::string(without_latest(model))}) {
    if (name.empty() || std::ranges::find(rules.model_names, name) != rules.model_names.end()) return "";
    TRY(const bool offered, rules.adapters->offers(name));
    if (offered) return name;
  }
  return std::unexpected(unknown_model(model, rules));
}

Result<> read_beam_search(Fields& f, GenerationRequest& out) {
  BeamOptions& beam = out.beam;
  TRY_VOID(f.boolean("use_beam_search", beam.enabled));
  TRY_VOID(f.number("length_penalty", beam.length_penalty));
  if (!beam.enabled && beam.length_penalty != 1) out.unknown_fields.emplace_back("length_penalty");
  if (std::abs(beam.length_penalty) <= kLengthPenaltyMax) return {};
  return invalid("length_penalty", "must be in [{}, {}], got {}", -kLengthPenaltyMax, kLengthPenaltyMax,
                 beam.length_penalty);
}

Result<> read_shared_fields(Fields& f, const RequestRules& rules, GenerationRequest& out) {
  TRY(out.adapter, read_model(f, rules));
  out.model = out.adapter.empty() ? rules.model_names.front() : out.adapter;
  out.report.tokens_as_token_ids = rules.return_tokens_as_token_ids;
  TRY_VOID(read_beam_search(f, out));
  TRY_VOID(read_draws(f, out.beam.enabled ? GenerationDefaults{} : rules.defaults, out.sampling));
  TRY_VOID(read_other_sampling(f, out.sampling));
  TRY_VOID(read_streaming(f, rules, out));
  TRY_VOID(read_identity(f, rules, out));
  TRY_VOID(read_prompt_handling(f, out));
  TRY(out.output, read_structured_output(f, rules.json, out.unknown_fields));
  TRY(out.kv_transfer, read_kv_transfer(f, rules.max_model_len));
  TRY(out.prompt.forwarded, read_forwarded_prompt(f, rules.limits.vocab_size));
  TRY_VOID(read_thinking_budget(f, rules, out.thinking));
  TRY_VOID(refuse_unsupported(f));
  // vllm_xargs has settings of vLLM's extensions; it is ignored, as in vLLM without extensions.
  TRY(const json::object* extra, f.object("vllm_xargs"));
  if (extra && !extra->empty()) out.unknown_fields.emplace_back("vllm_xargs");
  // spaces_between_special_tokens has no effect with fast tokenizers. The other fields identify the caller.
  TRY(SessionHints hints, read_session(f, out.unknown_fields));
  // In Dynamo, requests with a higher priority run first; in vLLM, those with a lower one. So the sign
  // changes.
  if (hints.request_priority && rules.priority_scheduling && out.priority == 0)
    out.priority = -std::int64_t{*hints.request_priority};
  out.session = std::move(hints.use);
  f.accept({"spaces_between_special_tokens", "user", "metadata", "safety_identifier", "service_tier"});
  return {};
}

Result<> finish_reading(const Fields& fields, const RequestRules& rules, GenerationRequest& out) {
  if (out.beam.enabled) TRY_VOID(settle_beam_search(rules, out));
  const std::string_view limit = out.limit_field.empty() ? "max_tokens" : out.limit_field;
  TRY(out.sampling, reported_as(validated(std::move(out.sampling), rules.limits), "max_tokens", limit));
  TRY_VOID(check_resume(out, rules));
  const SamplingParams& p = out.sampling;
  if (out.stream.enabled && p.logprobs.prompt)
    return invalid("prompt_logprobs", "is not available with stream = true");
  if (out.stream.enabled && p.logprobs.of_prompt())
    return invalid("prompt_logprob_token_ids", "is not available with stream = true");
  out.report.prompt_logprobs = p.logprobs.prompt.has_value();
  if (!p.logprobs.token_ids.empty() && !p.logprobs.output)
    return invalid("logprob_token_ids", "needs logprobs");
  if (p.truncate_prompt_tokens && *p.truncate_prompt_tokens > rules.max_model_len)
    return invalid("truncate_prompt_tokens", "must be at most the context of {} tokens, got {}",
                   rules.max_model_len, *p.truncate_prompt_tokens);
  for (std::string& name : fields.unread()) out.unknown_fields.push_back(std::move(name));
  return {};
}

}  // namespace octavo::openai
