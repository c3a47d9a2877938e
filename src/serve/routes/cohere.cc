// Cohere's /v2/chat
#include "openai/cohere_errors.h"
#include "serve/cohere/chat_reply.h"
#include "serve/cohere/chat_request.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

Result<> cohere_chat(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const boost::json::object body, openai::parse_body(exchange->take_body()));
  TRY(cohere::ConvertedChat chat, cohere::parse_chat_request(body, service->options.rules));
  TRY_VOID(read_headers(exchange->request(), chat.request.generation));
  const auto waiting = std::make_shared<openai::ChatRequest>(std::move(chat.request));
  const auto go_on = [=]() -> Result<> {
    const bool plans = !service->options.features.cohere_thinking;
    TRY(GenerationPlan plan,
        prepare_chat_as(*service, std::move(*waiting), "chatcmpl-",
                        [plans](const Tokenizer& tokenizer, openai::ReplyOptions options) {
                          return cohere::chat_reply(tokenizer, std::move(options), plans);
                        }));
    plan.error_response = cohere::error_response;
    generate(service, exchange, std::move(plan));
    return {};
  };
  return with_media(service, exchange, waiting->prompt.media, cohere::error_response, go_on);
}

}  // namespace octavo::routes
