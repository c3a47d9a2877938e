// Routes that convert text to token ids and back.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>

#include "openai/errors.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

constexpr std::size_t kDetokenizeMax = std::size_t{1} << 20;  // maximum number of token ids per request

void respond_tokens(const Service& service, http::Exchange& exchange, const std::vector<TokenId>& ids,
                    bool return_token_strs) {
  json::object out{{"count", ids.size()}, {"max_model_len", service.options.rules.max_model_len}};
  out["tokens"] = json::value_from(ids);
  out["token_strs"] = nullptr;
  if (return_token_strs) {
    json::array strings;
    for (const TokenId id : ids) strings.emplace_back(service.tokenizer.token(id).value_or(""));
    out["token_strs"] = std::move(strings);
  }
  exchange.respond({.body = json::serialize(out)});
}

}  // namespace

Result<> with_chat_tokens(const ServicePtr& service, const ExchangePtr& exchange, openai::ChatPrompt prompt,
                          bool add_special_tokens, std::size_t bytes_max,
                          http::Response (*error_response)(const Error&),
                          std::function<void(std::vector<TokenId>)> go_on) {
  const auto waiting = std::make_shared<openai::ChatPrompt>(std::move(prompt));
  return with_media(service, exchange, waiting->media, error_response, [=]() -> Result<> {
    TRY(ChatTokens tokens, chat_tokens(*service, *waiting, add_special_tokens, bytes_max));
    go_on(std::move(tokens.ids));
    return {};
  });
}

Result<> tokenize(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  TRY_VOID(openai::read_model(fields, service->options.rules));
  const bool chat = fields.any("messages") != nullptr;
  bool add_special_tokens = !chat;
  bool return_token_strs = false;
  TRY_VOID(fields.boolean("add_special_tokens", add_special_tokens));
  TRY_VOID(fields.boolean("return_token_strs", return_token_strs));
  if (chat) {
    TRY(openai::ChatPrompt prompt, openai::read_chat_prompt(fields, service->options.rules));
    return with_chat_tokens(service, exchange, std::move(prompt), add_special_tokens, kEncodeBytesMax,
                            openai::error_response, [=](const std::vector<TokenId>& ids) {
                              respond_tokens(*service, *exchange, ids, return_token_strs);
                            });
  }
  std::string prompt;
  if (!fields.any("prompt")) return invalid("prompt", "is missing");
  TRY_VOID(fields.text("prompt", prompt));
  TRY(const std::vector<TokenId> ids, service->tokenizer.encode(prompt, add_special_tokens));
  respond_tokens(*service, *exchange, ids, return_token_strs);
  return {};
}

Result<> detokenize(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  TRY_VOID(openai::read_model(fields, service->options.rules));
  std::vector<TokenId> ids;
  if (!fields.any("tokens")) return invalid("tokens", "is missing");
  TRY_VOID(fields.integers("tokens", ids));
  if (ids.size() > kDetokenizeMax)
    return invalid("tokens", "must have at most {} token ids, got {}", kDetokenizeMax, ids.size());
  const int vocabulary = service->options.rules.limits.vocab_size;
  for (const TokenId id : ids)
    if (id < 0 || id >= vocabulary)
      return invalid("tokens", "token id {} is out of vocabulary: must be in [0, {})", id, vocabulary);
  TRY(const std::string text, service->tokenizer.decode(ids, false));
  exchange->respond({.body = json::serialize(json::object{{"prompt", text}})});
  return {};
}

http::Response tokenizer_info(Service& service, std::string_view) {
  if (!service.options.features.tokenizer_info)
    return openai::error_response(404, "this route needs a server with --enable-tokenizer-info-endpoint");
  // The response has fields of tokenizer_config.json and of related files.
  const TokenizerConfig& config = service.tokenizer.config();
  boost::system::error_code none;
  const json::value file = json::parse(config.json, none);
  json::object info = !none && file.is_object() ? file.get_object() : json::object();
  for (const SpecialToken& token : config.special_tokens) info[token.name] = token.text;
  if (!config.chat_template(false).empty()) info["chat_template"] = config.chat_template(false);
  info.emplace("tokenizer_class", "PreTrainedTokenizerFast");
  return {.body = json::serialize(info)};
}

}  // namespace octavo::routes
