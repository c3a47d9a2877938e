// Ollama's API: /api/chat, /api/generate, /api/embed, and the other routes that Ollama's clients use. The
// server has one model, so routes that change the set of models are refused.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>

#include "base/hash.h"
#include "openai/ollama_errors.h"
#include "openai/request_id.h"
#include "serve/ollama/reply.h"
#include "serve/ollama/requests.h"
#include "serve/pooling.h"
#include "serve/pooling_plan.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

ReplyMaker reply_maker(ollama::Shape shape) {
  return [shape](const Tokenizer& tokenizer, openai::ReplyOptions options) {
    return ollama::make_reply(shape, tokenizer, std::move(options));
  };
}

Result<> start_generation(const ServicePtr& service, const ExchangePtr& exchange,
                          Result<GenerationPlan> plan) {
  if (!plan) return std::unexpected(plan.error());
  plan->error_response = ollama::error_response;
  generate(service, exchange, *std::move(plan));
  return {};
}

Result<> answer(const ServicePtr& service, const ExchangePtr& exchange, ollama::Shape shape,
                ollama::Request request) {
  if (const auto* hold = std::get_if<ollama::Hold>(&request)) {
    exchange->respond({.body = ollama::hold_reply(shape, *hold)});
    return {};
  }
  if (auto* text = std::get_if<openai::CompletionRequest>(&request)) {
    TRY_VOID(read_headers(exchange->request(), text->generation));
    return start_generation(service, exchange,
                            prepare_completion_as(*service, std::move(*text), "ollama-", reply_maker(shape)));
  }
  const auto waiting =
      std::make_shared<openai::ChatRequest>(std::get<openai::ChatRequest>(std::move(request)));
  TRY_VOID(read_headers(exchange->request(), waiting->generation));
  return with_media(service, exchange, waiting->prompt.media, ollama::error_response, [=] {
    return start_generation(service, exchange,
                            prepare_chat_as(*service, std::move(*waiting), "ollama-", reply_maker(shape)));
  });
}

// Returns the model's properties for /api/tags, /api/ps and /api/show.
json::object details(const Service& service) {
  const std::string& family = service.engine_info.architecture;
  return {{"parent_model", ""},   {"format", ""},         {"family", family},
          {"families", {family}}, {"parameter_size", ""}, {"quantization_level", ""}};
}

json::object card(const Service& service, std::string_view name) {
  const Hash128 hash =
      hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(service.options.model.root)), 0);
  return {{"name", name},
          {"model", name},
          {"modified_at", ollama::time_of(service.started_at)},
          {"size", service.engine_info.weight_bytes},
          {"digest", fmt::format("{:016x}{:016x}", hash.high, hash.low)},
          {"details", details(service)}};
}

json::array capabilities(const Service& service) {
  const openai::RequestRules& rules = service.options.rules;
  if (service.engine_info.tasks.default_task != Task::generate) return {"embedding"};
  json::array all{"completion"};
  if (rules.tool_dialect) all.push_back("tools");
  if (rules.images_max > 0) all.push_back("vision");
  if (rules.sounds_max > 0) all.push_back("audio");
  if (rules.reasoning) all.push_back("thinking");
  return all;
}

// Reads the body's `model`, or the older `name`. Returns not_found if the server does not serve this model.
Result<std::string> named_model(const json::object& body, const openai::RequestRules& rules) {
  openai::Fields fields(body);
  std::string model;
  TRY_VOID(fields.text("name", model));
  TRY_VOID(fields.text("model", model));
  if (model.empty()) return invalid("model", "is missing");
  const json::object named{{"model", model}};
  openai::Fields names(named);
  TRY_VOID(openai::read_model(names, rules));
  return model;
}

// several: whether `input` may be a list of texts.
Result<> embed(const ServicePtr& service, const ExchangePtr& exchange, bool several, VectorsReply reply) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(const json::object wanted, ollama::embedding_body(body));
  if (!wanted.contains("input")) {  // clients of Ollama load a model with such a request
    TRY(const std::string model, named_model(body, service->options.rules));
    TRY_VOID(check_embeddings(*service, reply));
    exchange->respond({.body = reply(model, 0, "")});
    return {};
  }
  if (!several && !wanted.at("input").is_string())
    return invalid("prompt", "must be one text: send several texts to /api/embed");
  const http::Request& request = exchange->request();
  TRY(openai::EmbeddingRequest texts, openai::parse_embedding_request(wanted, service->options.rules));
  TRY(PoolingPlan plan,
      plan_embeddings(*service, std::move(texts), openai::request_id_of(request.headers), reply));
  constexpr std::string_view kRead[] = {"model", "input", "prompt", "truncate", "dimensions", "keep_alive"};
  for (const auto& [key, value] : body) {
    const std::string_view name = key;
    if (std::ranges::find(kRead, name) == std::end(kRead)) plan.unknown_fields.emplace_back(name);
  }
  service->unknown_fields.warn(plan.unknown_fields);
  plan.client = client_of(*service, request);
  plan.error_response = ollama::error_response;
  return Pooling::start(service, std::move(plan), exchange);
}

}  // namespace

Result<> ollama_chat(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(ollama::Request request, ollama::parse_chat(body, service->options.rules));
  return answer(service, exchange, ollama::Shape::chat, std::move(request));
}

Result<> ollama_generate(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(ollama::Request request,
      ollama::parse_generate(body, service->options.rules, service->templates.plain != nullptr));
  return answer(service, exchange, ollama::Shape::generate, std::move(request));
}

Result<> ollama_embed(const ServicePtr& service, const ExchangePtr& exchange) {
  return embed(service, exchange, true,
               [](std::string_view model, std::int64_t tokens, std::string_view data) {
                 return fmt::format(R"({{"model":{},"embeddings":[{}],"prompt_eval_count":{}}})",
                                    json::serialize(json::string(model)), data, tokens);
               });
}

Result<> ollama_embeddings(const ServicePtr& service, const ExchangePtr& exchange) {
  return embed(service, exchange, false, [](std::string_view, std::int64_t, std::string_view data) {
    return fmt::format(R"({{"embedding":{}}})", data.empty() ? "[]" : data);
  });
}

http::Response ollama_tags(Service& service, std::string_view) {
  json::array models;
  for (const std::string& name : service.options.rules.model_names) models.push_back(card(service, name));
  for (const AdapterCard& adapter : service.adapters->all()) models.push_back(card(service, adapter.name));
  return {.body = json::serialize(json::object{{"models", std::move(models)}})};
}

http::Response ollama_ps(Service& service, std::string_view) {
  json::object model = card(service, service.options.rules.model_names.front());
  // far in the future, because the model stays loaded until the server stops
  model["expires_at"] = "9999-12-31T23:59:59Z";
  model["size_vram"] = 0;
  model["context_length"] = service.options.rules.max_model_len;
  return {.body = json::serialize(json::object{{"models", json::array{std::move(model)}}})};
}

Result<> ollama_show(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY_VOID(named_model(body, service->options.rules));
  const std::string& architecture = service->engine_info.architecture;
  exchange->respond({.body = json::serialize(json::object{
                         {"modelfile", ""},
                         {"parameters", ""},
                         {"template", ""},
                         {"details", details(*service)},
                         {"model_info",
                          {{"general.architecture", architecture},
                           {architecture + ".context_length", service->options.rules.max_model_len},
                           {architecture + ".vocab_size", service->engine_info.vocab_size}}},
                         {"capabilities", capabilities(*service)},
                         {"modified_at", ollama::time_of(service->started_at)}})});
  return {};
}

http::Response ollama_version(Service& service, std::string_view) {
  return {.body = json::serialize(
              json::object{{"version", ollama::kApiVersion}, {"octavo", service.options.version}})};
}

// Reports success at once, because the served model is already loaded.
Result<> ollama_pull(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY_VOID(named_model(body, service->options.rules));
  exchange->respond({.content_type = "application/x-ndjson", .body = "{\"status\":\"success\"}\n"});
  return {};
}

Result<> ollama_change(const ServicePtr&, const ExchangePtr&) {
  return failure(ErrorCode::unsupported,
                 "a running server cannot add models: use `octavo pull` or `octavo rm`, and start one server "
                 "for each model");
}

http::Response ollama_delete(Service&, std::string_view) {
  return ollama::error_response(
      {ErrorCode::unsupported, "a running server cannot delete its model: use `octavo rm`", ""});
}

}  // namespace octavo::routes
