// Routes whose requests and replies contain token ids, and routes that render prompts to token ids.
#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>

#include "serve/anthropic/messages_request.h"
#include "serve/cohere/chat_request.h"
#include "serve/openai/inference_reply.h"
#include "serve/openai/responses_request.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

constexpr auto kOfRequest =
    std::to_array<std::string_view>({"request_id", "model", "stream", "stream_options", "cache_salt",
                                     "priority", "kv_transfer_params", "include_cost"});
constexpr auto kConstraints = std::to_array<std::string_view>({"structured_outputs", "response_format"});

// Fields of a completion that are not sampling parameters.
constexpr auto kOfCompletions =
    std::to_array<std::string_view>({"prompt", "model", "stream", "stream_options", "echo", "suffix",
                                     "return_token_ids", "return_tokens_as_token_ids", "request_id",
                                     "cache_salt", "priority", "kv_transfer_params", "include_cost"});
// Sampling parameters without effect, because the reply contains tokens instead of text.
constexpr auto kOfText = std::to_array<std::string_view>({"detokenize", "output_kind"});

// Converts the body to the body of a completion, for which the same rules apply.
Result<json::object> as_completion(const json::object& body) {
  openai::Fields fields(body);
  const json::value* features = fields.any("features");
  if (features && !features->is_null())
    return invalid("features", "are not supported: send images to /v1/chat/completions");
  TRY(const json::array* ids, fields.array("token_ids"));
  if (!ids || ids->empty()) return invalid("token_ids", "must be a list of at least one token id");
  json::object out{{"prompt", *ids}, {"return_token_ids", true}};
  TRY(const json::object* sampling, fields.object("sampling_params"));
  if (sampling)
    for (const auto& [key, value] : *sampling) {
      const std::string_view name = key;
      if (std::ranges::find(kOfCompletions, name) != kOfCompletions.end())
        return invalid(fmt::format("sampling_params.{}", name), "is no sampling parameter");
      if (std::ranges::find(kOfText, name) == kOfText.end() && !value.is_null()) out[key] = value;
    }
  for (const std::string_view name : kOfRequest)
    if (const json::value* value = fields.any(name)) out[name] = *value;
  return out;
}

// Returns the body of a generation request for a rendered prompt.
json::object generation_body(const json::object& requested, const GenerationPlan& plan, std::size_t prompt) {
  json::object sampling{{"max_tokens", plan.request.sampling.max_tokens.value_or(0)}};
  const auto copy = [&](std::string_view name) {
    if (const json::value* value = requested.if_contains(name); value && !value->is_null())
      sampling[name] = *value;
  };
  for (const SamplingField& field : sampling_fields())
    if (field.part != SamplingField::Part::prompt) copy(field.name);
  for (const std::string_view name : kConstraints) copy(name);
  if (const auto& logprobs = plan.request.sampling.logprobs.output) sampling["logprobs"] = *logprobs;
  json::object out{{"request_id", plan.request.request_id},
                   {"model", plan.request.model},
                   {"token_ids", json::value_from(plan.prompts[prompt])},
                   {"features", nullptr},
                   {"sampling_params", std::move(sampling)},
                   {"stream", plan.request.stream.enabled},
                   {"priority", plan.request.priority}};
  if (!plan.request.cache_salt.empty()) out["cache_salt"] = plan.request.cache_salt;
  return out;
}

// Answers with the rendered prompt of a conversation.
Result<> render(Service& service, http::Exchange& exchange, const json::object& body,
                openai::ChatRequest request) {
  if (!request.prompt.media.empty())
    return invalid("messages",
                   "this route cannot render images and sound: send them to /v1/chat/completions");
  TRY(const GenerationPlan plan, prepare_chat(service, std::move(request)));
  exchange.respond({.body = json::serialize(generation_body(body, plan, 0))});
  return {};
}

}  // namespace

Result<> render_chat(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(auto request, openai::parse_chat_request(body, service->options.rules));
  return render(*service, *exchange, body, std::move(request));
}

Result<> render_messages(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(auto request, anthropic::parse_messages_request(body, service->options.rules));
  return render(*service, *exchange, body, std::move(request));
}

Result<> render_cohere_chat(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(cohere::ConvertedChat chat, cohere::parse_chat_request(body, service->options.rules));
  return render(*service, *exchange, chat.body, std::move(chat.request));
}

Result<> render_response(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(auto request, openai::parse_responses_request(body, service->options.rules, service->responses));
  return render(*service, *exchange, body, std::move(request.chat));
}

Result<> render_completion(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(auto request, openai::parse_completion_request(body, service->options.rules));
  TRY(const GenerationPlan plan, prepare_completion(*service, std::move(request)));
  json::array all;
  for (std::size_t i = 0; i < plan.prompts.size(); ++i) all.push_back(generation_body(body, plan, i));
  exchange->respond({.body = json::serialize(all)});
  return {};
}

Result<> inference(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(const json::object completion, as_completion(body));
  TRY(auto request, openai::parse_completion_request(completion, service->options.rules));
  // As in vLLM, the default of max_tokens is all tokens that fit the context, not the default of completions.
  if (!completion.contains("max_tokens") && !service->options.rules.defaults.max_tokens)
    request.generation.sampling.max_tokens.reset();
  TRY_VOID(read_headers(exchange->request(), request.generation));
  TRY(GenerationPlan plan, prepare_completion_as(*service, std::move(request), "", openai::inference_reply));
  return start(service, exchange, std::move(plan));
}

}  // namespace octavo::routes
