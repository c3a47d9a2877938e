#include "serve/openai/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "http/sse.h"
#include "openai/errors.h"
#include "serve/openai/kv_transfer_fields.h"
#include "text/utf8.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

json::object token_json(const Tokenizer& tokenizer, const ReplyOptions& options, TokenId id, float logprob) {
  json::array bytes;
  for (const char byte : tokenizer.token_bytes(id).value_or(""))
    bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", shown_token(tokenizer, id, options.return_tokens_as_token_ids)},
          {"logprob", shown_logprob(logprob)},
          {"bytes", std::move(bytes)}};
}

std::optional<double> milliseconds(std::int64_t from_us, std::int64_t to_us) {
  if (from_us <= 0 || to_us <= 0) return std::nullopt;
  return static_cast<double>(to_us - from_us) * 1e-3;
}

// Durations in ms. queue: from the arrival to the first step. ttft: from the first step to the first token.
// generation: from the first token to the last token.
struct Phases {
  explicit Phases(const RequestTimes& t)
      : queue(milliseconds(t.arrived_us, t.scheduled_us)),
        ttft(milliseconds(t.scheduled_us, t.first_token_us)),
        generation(milliseconds(t.first_token_us, t.last_token_us)) {}

  std::optional<double> queue, ttft, generation;
};

}  // namespace

json::array weight_versions_json(const AnswerPart& part) {
  json::array spans;
  for (const WeightSpan& span : part.weights)
    spans.push_back(json::object{{"version", span.version}, {"start", span.start}, {"end", span.end}});
  return spans;
}

std::string stream_end(const std::optional<json::object>& usage_chunk) {
  std::string out = usage_chunk ? http::sse_event(json::serialize(*usage_chunk)) : "";
  return out + http::sse_event("[DONE]");
}

std::string stream_failed(const Error& error) {
  return http::sse_event(error_json(error)) + http::sse_event("[DONE]");
}

json::object usage_json(const Usage& usage) {
  json::object out{{"prompt_tokens", usage.prompt_tokens},
                   {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
                   {"completion_tokens", usage.completion_tokens}};
  if (usage.cached_tokens)
    out["prompt_tokens_details"] = json::object{{"cached_tokens", *usage.cached_tokens}};
  if (usage.cached_tokens && usage.stored_tokens)
    out["prompt_tokens_details"].get_object()["cache_creation_input_tokens"] = *usage.stored_tokens;
  if (usage.reasoning_tokens)
    out["completion_tokens_details"] = json::object{{"reasoning_tokens", *usage.reasoning_tokens}};
  add_cost(usage, out);
  return out;
}

void add_cost(const Usage& usage, json::object& out) {
  if (usage.cost) out["octavo"] = cost_json(*usage.cost, usage.prices);
}

json::object progress_json(const Progress& progress) {
  return {{"total", progress.total},
          {"cache", progress.cached},
          {"processed", progress.computed},
          {"time_ms", progress.ms}};
}

void add_usage(const Usage& usage, json::object& out) {
  out["usage"] = usage_json(usage);
  if (!usage.times) return;
  const Phases phases(*usage.times);
  const auto tokens = static_cast<double>(usage.completion_tokens);
  std::optional<double> gap, rate;
  if (phases.generation && tokens > 1) gap = *phases.generation / (tokens - 1);
  const auto inference = milliseconds(usage.times->scheduled_us, usage.times->last_token_us);
  if (inference && *inference > 0) rate = tokens / *inference * 1e3;
  json::object metrics;
  const auto add = [&metrics](std::string_view name, std::optional<double> value) {
    if (value) metrics[name] = *value;  // an unknown time is left out, as in vLLM
  };
  add("time_to_first_token_ms", phases.ttft);
  add("generation_time_ms", phases.generation);
  add("queue_time_ms", phases.queue);
  add("mean_itl_ms", gap);
  add("tokens_per_second", rate);
  out["metrics"] = std::move(metrics);
}

std::string server_timing(const RequestTimes& times) {
  const Phases phases(times);
  std::string out;
  const auto add = [&](std::string_view name, std::optional<double> value) {
    if (value) out += fmt::format("{}{};dur={:.3f}", out.empty() ? "" : ", ", name, *value);
  };
  add("queue", phases.queue);
  add("ttft", phases.ttft);
  add("generation", phases.generation);
  return out;
}

void add_unused(json::object& out) { out["service_tier"] = out["kv_transfer_params"] = nullptr; }

void add_kv_transfer(std::span<const AnswerPart> parts, json::object& out) {
  for (const AnswerPart& part : parts)
    if (part.kv_transfer) out["kv_transfer_params"] = kv_transfer_json(*part.kv_transfer);
}

json::value stop_reason_json(const StopReason& reason) {
  if (const auto* id = std::get_if<TokenId>(&reason)) return *id;
  if (const auto* text = std::get_if<std::string>(&reason)) return json::value(*text);
  return nullptr;
}

json::value finish_reason_json(const std::optional<FinishReason>& reason) {
  return reason ? json::value(name(*reason)) : json::value(nullptr);
}

std::string shown_token(const Tokenizer& tokenizer, TokenId id, bool as_id) {
  if (as_id) return fmt::format("token_id:{}", id);
  return replace_invalid_utf8(tokenizer.token_bytes(id).value_or(""));
}

double shown_logprob(float logprob) { return std::max(static_cast<double>(logprob), -9999.0); }

std::span<const std::pair<TokenId, float>> most_likely(const TokenLogprobs& entry, int count) {
  const std::span<const std::pair<TokenId, float>> all(entry.top);
  return count < 0 ? all : all.first(std::min(all.size(), static_cast<std::size_t>(count)));
}

json::array token_logprobs_json(const Tokenizer& tokenizer, const ReplyOptions& options,
                                const AnswerPart& part) {
  json::array all;
  for (const TokenLogprobs& entry : part.logprobs) {
    json::array top;
    if (options.listed_logprobs) top.push_back(token_json(tokenizer, options, entry.id, entry.logprob));
    for (const auto& [id, logprob] : most_likely(entry, options.top_logprobs))
      if (!options.listed_logprobs || id != entry.id) top.push_back(token_json(tokenizer, options, id, logprob));
    json::object token = token_json(tokenizer, options, entry.id, entry.logprob);
    token["top_logprobs"] = std::move(top);
    all.push_back(std::move(token));
  }
  return all;
}

json::value prompt_logprobs_json(const Tokenizer& tokenizer, const ReplyOptions& options,
                                 const EchoedPrompt& prompt) {
  json::array out{nullptr};
  for (const TokenLogprobs& entry : prompt.logprobs) {
    json::object position;
    const auto add = [&](TokenId id, float logprob, int rank) {
      position.emplace(std::to_string(id),
                       json::object{{"logprob", shown_logprob(logprob)},
                                    {"rank", rank},
                                    {"decoded_token", shown_token(tokenizer, id, false)}});
    };
    add(entry.id, entry.logprob, entry.rank);
    for (std::size_t i = 0; i < entry.top.size() && !options.return_prompt_scores; ++i)
      add(entry.top[i].first, entry.top[i].second, static_cast<int>(i) + 1);
    out.push_back(std::move(position));
  }
  return out;
}

}  // namespace octavo::openai
