// Routes of pooling models: /v1/embeddings, /v2/embed, /pooling, /classify, /score and /rerank.
#include "serve/pooling.h"
#include "openai/request_id.h"
#include "serve/pooling_plan.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {
namespace {

Result<> read_texts(const ServicePtr& service, const ExchangePtr& exchange, PoolingRoute route) {
  TRY(const boost::json::object body, openai::parse_body(exchange->take_body()));
  const http::Request& request = exchange->request();
  TRY(PoolingPlan plan, plan_pooling(*service, route, body, openai::request_id_of(request.headers)));
  service->unknown_fields.warn(plan.unknown_fields);
  plan.client = client_of(*service, request);
  plan.account = account_of(*service, request);
  if (request.origin == http::Request::Origin::background) plan.priority = kBackgroundPriority;
  return Pooling::start(service, std::move(plan), exchange);
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
