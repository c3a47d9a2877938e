// Routes of pooling models: /v1/embeddings, /v2/embed, /pooling, /classify, /score and /rerank.
#include "serve/pooling.h"

#include <memory>

#include "openai/request_id.h"
#include "serve/pooling_plan.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {
namespace {

Result<> start_pooling(const ServicePtr& service, const ExchangePtr& exchange, PoolingRoute route,
                       openai::PoolingRequest given) {
  const http::Request& request = exchange->request();
  TRY(PoolingPlan plan,
      plan_pooling(*service, route, std::move(given), openai::request_id_of(request.headers)));
  service->unknown_fields.warn(plan.unknown_fields);
  plan.client = client_of(*service, request);
  plan.account = account_of(*service, request);
  if (request.origin == http::Request::Origin::background) plan.priority = kBackgroundPriority;
  return Pooling::start(service, std::move(plan), exchange);
}

// Returns the media of the request; null if such a request has none.
std::vector<openai::ChatPrompt::Media>* media_of(openai::PoolingRequest& request) {
  if (auto* const texts = std::get_if<openai::EmbeddingRequest>(&request))
    return texts->chat ? &texts->chat->media : nullptr;
  if (auto* const types = std::get_if<openai::EmbedByTypeRequest>(&request)) return &types->media;
  if (auto* const pairs = std::get_if<openai::ScoreRequest>(&request)) return &pairs->media;
  if (auto* const ranks = std::get_if<openai::RerankRequest>(&request)) return &ranks->scored.media;
  return nullptr;
}

Result<> read_texts(const ServicePtr& service, const ExchangePtr& exchange, PoolingRoute route) {
  TRY(const boost::json::object body, openai::parse_body(exchange->take_body()));
  TRY(openai::PoolingRequest request, parse_pooling(route, body, service->options.rules));
  const auto waiting = std::make_shared<openai::PoolingRequest>(std::move(request));
  const auto go_on = [=] { return start_pooling(service, exchange, route, std::move(*waiting)); };
  std::vector<openai::ChatPrompt::Media>* const media = media_of(*waiting);
  if (media == nullptr) return go_on();
  return with_media(service, exchange, *media, openai::error_response, go_on);
}

}  // namespace

Result<> embeddings(const ServicePtr& service, const ExchangePtr& exchange) {
  return read_texts(service, exchange, PoolingRoute::embeddings);
}

Result<> embed_by_type(const ServicePtr& service, const ExchangePtr& exchange) {
  return read_texts(service, exchange, PoolingRoute::embed_by_type);
}

Result<> pooling(const ServicePtr& service, const ExchangePtr& exchange) {
  return read_texts(service, exchange, PoolingRoute::pooling);
}

Result<> classify(const ServicePtr& service, const ExchangePtr& exchange) {
  return read_texts(service, exchange, PoolingRoute::classify);
}

Result<> score(const ServicePtr& service, const ExchangePtr& exchange) {
  return read_texts(service, exchange, PoolingRoute::score);
}

Result<> rerank(const ServicePtr& service, const ExchangePtr& exchange) {
  return read_texts(service, exchange, PoolingRoute::rerank);
}

}  // namespace octavo::routes
