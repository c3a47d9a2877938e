#include "serve/openai/pooling_request.h"

#include <boost/json/array.hpp>

namespace octavo::openai {

namespace json = boost::json;

namespace {

Result<> read_pooling_fields(Fields& f, const RequestRules& rules, PoolingFields& out) {
  TRY(const std::string adapter, read_model(f, rules));
  if (!adapter.empty()) return invalid("model", "LoRA adapters only generate, `{}` is one", adapter);
  TRY_VOID(f.text("request_id", out.request_id));
  TRY_VOID(f.integer64("priority", out.priority));
  TRY_VOID(f.integer("truncate_prompt_tokens", out.truncate, -1, rules.max_model_len));
  if (out.truncate == 0) return invalid("truncate_prompt_tokens", "must be -1 or from 1 on");
  std::string side = "right";
  TRY_VOID(f.text("truncation_side", side));
  if (side != "right") return invalid("truncation_side", "must be \"right\": texts keep their first tokens");
  TRY_VOID(f.boolean("add_special_tokens", out.add_special_tokens));
  TRY_VOID(f.boolean("normalize", out.activated));
  TRY_VOID(f.boolean("use_activation", out.activated));
  // They identify the caller, or what no cache keeps.
  f.accept({"user", "cache_salt", "mm_processor_kwargs"});
  return {};
}

void finish_pooling_fields(const Fields& f, PoolingFields& out) { out.unknown_fields = f.unread(); }

// A text, a list of texts, or either in an object {"text": ..}.
Result<std::string> text_of(const json::value& item, std::string_view field) {
  if (item.is_string()) return std::string(item.get_string());
  if (const json::object* object = item.if_object())
    if (const json::value* text = object->if_contains("text"); text && text->is_string())
      return std::string(text->get_string());
  return invalid(field, "must be a text, or a list of texts");
}

// The first of these fields that is there.
Result<std::vector<std::string>> read_texts(Fields& f, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const json::value* found = f.any(name);
    if (!found) continue;
    std::vector<std::string> texts;
    if (!found->is_array()) {
      TRY(texts.emplace_back(), text_of(*found, name));
      return texts;
    }
    const json::array& items = found->get_array();
    if (items.empty()) return invalid(name, "must not be empty");
    if (items.size() > static_cast<std::size_t>(kTextsMax))
      return invalid(name, "at most {} texts, got {}", kTextsMax, items.size());
    for (const json::value& item : items) {
      TRY(texts.emplace_back(), text_of(item, name));
    }
    return texts;
  }
  return invalid(*names.begin(), "is missing");
}

}  // namespace

Result<EmbeddingRequest> parse_embedding_request(const json::object& body, const RequestRules& rules) {
  EmbeddingRequest request;
  Fields f(body);
  TRY_VOID(read_pooling_fields(f, rules, request.fields));
  TRY_VOID(f.refuse("messages", "is not supported: send input"));
  TRY(request.input, read_prompts(f, "input", kTextsMax));
  std::string format = "float";
  TRY_VOID(f.text("encoding_format", format));
  if (format != "float" && format != "base64")
    return invalid("encoding_format", "must be \"float\" or \"base64\", got \"{}\"", format);
  request.base64 = format == "base64";
  TRY_VOID(f.integer("dimensions", request.dimensions, 1));
  std::string task;
  TRY_VOID(f.text("task", task));
  if (!task.empty() && task != "embed" && task != "classify")
    return invalid("task", "must be \"embed\" or \"classify\", got \"{}\"", task);
  finish_pooling_fields(f, request.fields);
  return request;
}

Result<ScoreRequest> parse_score_request(const json::object& body, const RequestRules& rules) {
  ScoreRequest request;
  Fields f(body);
  TRY_VOID(read_pooling_fields(f, rules, request.fields));
  TRY(request.queries, read_texts(f, {"text_1", "queries", "data_1"}));
  TRY(request.documents, read_texts(f, {"text_2", "documents", "data_2"}));
  if (request.queries.size() != 1 && request.queries.size() != request.documents.size())
    return invalid("text_1", "must be one text or as many as text_2: {} and {}", request.queries.size(),
                   request.documents.size());
  finish_pooling_fields(f, request.fields);
  return request;
}

Result<RerankRequest> parse_rerank_request(const json::object& body, const RequestRules& rules) {
  RerankRequest request;
  Fields f(body);
  TRY_VOID(read_pooling_fields(f, rules, request.fields));
  const json::value* query = f.any("query");
  if (!query) return invalid("query", "is missing");
  TRY(request.query, text_of(*query, "query"));
  TRY(request.documents, read_texts(f, {"documents"}));
  TRY_VOID(f.integer("top_n", request.top_n, 0));
  TRY_VOID(f.boolean("return_documents", request.return_documents));
  int tokens_per_document = 0;  // Cohere's name
  TRY_VOID(f.integer("max_tokens_per_doc", tokens_per_document, 0));
  if (tokens_per_document > 0)
    return invalid("max_tokens_per_doc", "is not supported; truncate_prompt_tokens cuts query and document");
  finish_pooling_fields(f, request.fields);
  return request;
}

}  // namespace octavo::openai
