// Anthropic's /v1/messages
#include <boost/json/serialize.hpp>

#include "openai/anthropic_errors.h"
#include "serve/anthropic/messages_reply.h"
#include "serve/anthropic/messages_request.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

Result<> messages(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(openai::ChatRequest request, anthropic::parse_messages_request(body, service->options.rules));
  TRY_VOID(read_headers(exchange->request(), request.generation));
  const auto waiting = std::make_shared<openai::ChatRequest>(std::move(request));
  const auto go_on = [=]() -> Result<> {
    TRY(GenerationPlan plan,
        prepare_chat_as(*service, std::move(*waiting), "msg_", anthropic::messages_reply));
    plan.error_response = anthropic::error_response;
    generate(service, exchange, std::move(plan));
    return {};
  };
  return with_media(service, exchange, waiting->prompt.media, anthropic::error_response, go_on);
}

Result<> count_tokens(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(openai::ChatRequest request, anthropic::parse_count_tokens_request(body, service->options.rules));
  return with_chat_tokens(
      service, exchange, std::move(request.prompt), request.generation.prompt.add_special_tokens,
      prompt_bytes_max(*service, true), anthropic::error_response, [=](const std::vector<TokenId>& ids) {
        exchange->respond({.body = json::serialize(json::object{{"input_tokens", ids.size()}})});
      });
}

}  // namespace octavo::routes
