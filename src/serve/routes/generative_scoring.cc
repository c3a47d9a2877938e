// /generative_scoring of vLLM: the probability that a label follows a query and an item.
#include <algorithm>
#include <utility>

#include "serve/openai/reported_names.h"
#include "serve/openai/scoring_reply.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

using Ids = std::vector<TokenId>;

Result<Ids> ids_of(const Service& service, openai::TextOrTokens&& text, bool special,
                   std::string_view field) {
  if (auto* ids = std::get_if<Ids>(&text)) {
    const int vocabulary = service.options.rules.limits.vocab_size;
    for (const TokenId id : *ids)
      if (id < 0 || id >= vocabulary)
        return invalid(field, "token id {} is out of vocabulary: must be in [0, {})", id, vocabulary);
    return std::move(*ids);
  }
  return openai::reported_as(
      service.tokenizer.encode(std::get<std::string>(text), special, prompt_bytes_max(service, false)),
      "prompt", field);
}

// Reads the items: a list of texts, or of lists of token ids. A single text or a single list of ids is an
// error.
Result<std::vector<openai::TextOrTokens>> read_items(openai::Fields& fields, int most) {
  TRY(const json::array* items, fields.array("items"));
  if (!items || items->empty()) return invalid("items", "must be a list of at least one item");
  if (!items->front().is_string() && !items->front().is_array())
    return invalid("items", "must be a list of texts, or of lists of token ids");
  return openai::read_prompts(fields, "items", most);
}

// Concatenates the query with each item. The total size is checked before allocation, because many short
// items repeat a long query many times.
Result<std::vector<openai::TextOrTokens>> join(const Service& service, const Ids& query,
                                               std::vector<Ids> items, bool item_first) {
  Price price{.answers = static_cast<int>(items.size())};
  for (const Ids& item : items)
    price.bytes += static_cast<std::int64_t>((query.size() + item.size()) * sizeof(TokenId));
  TRY_VOID(service.admission.possible(price));
  std::vector<openai::TextOrTokens> prompts;
  for (Ids& item : items) {
    item.insert(item_first ? item.end() : item.begin(), query.begin(), query.end());
    prompts.emplace_back(std::move(item));
  }
  return prompts;
}

Result<std::vector<openai::TextOrTokens>> read_scored(const Service& service, openai::Fields& fields,
                                                      bool special) {
  bool item_first = false;
  TRY_VOID(fields.boolean("item_first", item_first));
  TRY(auto query, openai::read_prompts(fields, "query", 1));
  TRY(auto given, read_items(fields, service.options.rules.prompts_max));
  TRY(const Ids query_ids, ids_of(service, std::move(query.front()), special, "query"));
  std::vector<Ids> items;
  for (openai::TextOrTokens& item : given) {
    TRY(items.emplace_back(), ids_of(service, std::move(item), false, "items"));
  }
  return join(service, query_ids, std::move(items), item_first);
}

// Reads label_token_ids and removes duplicates. The score is the probability of the first label.
Result<Ids> read_labels(openai::Fields& fields) {
  Ids given, labels;
  TRY_VOID(fields.integers("label_token_ids", given));
  if (given.empty()) return invalid("label_token_ids", "must be a list of at least one token id");
  for (const TokenId id : given)
    if (std::ranges::find(labels, id) == labels.end()) labels.push_back(id);
  return labels;
}

Result<openai::CompletionRequest> read_scoring(const Service& service, const json::object& body,
                                               bool& among_labels) {
  openai::CompletionRequest request;
  openai::GenerationRequest& out = request.generation;
  const openai::RequestRules& rules = service.options.rules;
  openai::Fields fields(body);
  // Copies all fields that the route shares with completions. Sampling fields have no effect.
  json::object shared{{"temperature", 0}};
  for (const std::string_view name :
       {"model", "cache_salt", "priority", "request_id", "timeout", "add_special_tokens"})
    if (const json::value* value = fields.any(name)) shared[name] = *value;
  openai::Fields read(shared);
  TRY_VOID(openai::read_shared_fields(read, rules, out));
  out.sampling.max_tokens = 1;
  out.sampling.logprobs.output = 0;
  TRY(out.sampling.logprobs.token_ids, read_labels(fields));
  TRY_VOID(fields.boolean("apply_softmax", among_labels));
  TRY(request.prompts, read_scored(service, fields, out.prompt.add_special_tokens));
  TRY_VOID(openai::reported_as(openai::finish_reading(fields, rules, out), "logprob_token_ids",
                               "label_token_ids"));
  return request;
}

}  // namespace

Result<> generative_scoring(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  bool among_labels = true;
  TRY(openai::CompletionRequest request, read_scoring(*service, body, among_labels));
  TRY_VOID(read_headers(exchange->request(), request.generation));
  const ReplyMaker reply = [among_labels](const Tokenizer&, openai::ReplyOptions options) {
    return openai::scoring_reply(std::move(options), among_labels);
  };
  TRY(GenerationPlan plan,
      openai::reported_as(prepare_completion_as(*service, std::move(request), "generative-scoring-", reply),
                          "prompt", "items"));
  return start(service, exchange, std::move(plan));
}

}  // namespace octavo::routes
