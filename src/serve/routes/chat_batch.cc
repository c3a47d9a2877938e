// /v1/chat/completions/batch: several conversations in one request, with one answer each.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "serve/openai/chat_request.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

// As in vLLM, each conversation has one answer, so n > 1 and streams are refused.
Result<> check_batch(const openai::ChatRequest& request) {
  const openai::GenerationRequest& requested = request.generation;
  if (requested.stream.enabled) return invalid("stream", "must be false for several conversations");
  if (requested.beam.enabled) return invalid("use_beam_search", "must be false for several conversations");
  if (requested.sampling.n != 1)
    return invalid("n", "must be 1 for several conversations, got {}", requested.sampling.n);
  if (!request.prompt.tools.empty()) return invalid("tools", "must be empty for several conversations");
  if (!request.prompt.media.empty())
    return invalid("messages",
                   "several conversations in one request cannot contain images or sound: send each "
                   "conversation in a separate request");
  return {};
}

Result<GenerationPlan> plan_of(Service& service, const http::Request& request, const json::object& body) {
  TRY(openai::ChatRequest chat, openai::parse_chat_request(body, service.options.rules));
  TRY_VOID(check_batch(chat));
  TRY_VOID(read_headers(request, chat.generation));
  return prepare_chat(service, std::move(chat));
}

void add_prompt(GenerationPlan one, GenerationPlan& all) {
  std::optional<int>& max_tokens = all.request.sampling.max_tokens;
  max_tokens =
      // The smaller limit fits the context for both prompts.
      std::min(max_tokens, one.request.sampling.max_tokens);
  all.prompts.push_back(std::move(one.prompts.front()));
  std::ranges::move(one.sources, std::back_inserter(all.sources));
  all.price += one.price;
}

}  // namespace

Result<> chat_batch(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  TRY(const json::array* given, fields.array("messages"));
  const int most = service->options.rules.prompts_max;
  if (!given || given->empty() || std::ssize(*given) > most)
    return invalid("messages", "must be a list of 1 to {} conversations", most);
  const json::array conversations = *given;
  std::optional<GenerationPlan> all;
  for (std::size_t i = 0; i < conversations.size(); ++i) {
    body["messages"] = conversations[i];
    auto one = plan_of(*service, exchange->request(), body);
    if (!one) {
      std::string& field = one.error().field;
      if (field.starts_with("messages"))
        field.insert(std::string_view("messages").size(), fmt::format("[{}]", i));
      return std::unexpected(one.error());
    }
    if (all)
      add_prompt(*std::move(one), *all);
    else
      all = *std::move(one);
  }
  return start(service, exchange, *std::move(all));
}

}  // namespace octavo::routes
