#include "serve/openai/pooling_request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <iterator>
#include <utility>

namespace octavo::openai {

namespace json = boost::json;

namespace {

Result<> read_pooling_fields(Fields& f, const RequestRules& rules, PoolingFields& out) {
  TRY(out.adapter, read_model(f, rules));
  TRY_VOID(f.text("request_id", out.request_id));
  TRY_VOID(f.integer64("priority", out.priority));
  TRY_VOID(f.integer("truncate_prompt_tokens", out.truncate, -1));
  if (out.truncate == 0) return invalid("truncate_prompt_tokens", "must be -1 or at least 1");
  std::string side = "right";
  TRY_VOID(f.text("truncation_side", side));
  if (side != "left" && side != "right") return invalid("truncation_side", "must be \"left\" or \"right\"");
  out.keep_last = side == "left";
  TRY_VOID(f.boolean("add_special_tokens", out.add_special_tokens));
  // Jina names the field `normalized`.
  for (const std::string_view name : {"normalize", "normalized", "use_activation"}) {
    if (f.any(name) == nullptr) continue;
    bool activated = true;
    TRY_VOID(f.boolean(name, activated));
    out.activated = activated;
  }
  TRY_VOID(f.refuse("padding", "is not supported: texts have no padding", "do_not_pad"));
  // Accepts fields that identify the client or concern a cache. They have no effect here.
  f.accept({"user", "cache_salt", "mm_processor_kwargs"});
  return {};
}

// If the request's task is the name of an adapter (Jina v3), selects this adapter.
Result<> take_adapter_of(const std::string& task, const RequestRules& rules, PoolingFields& out) {
  if (task.empty() || !out.adapter.empty()) return {};
  TRY(const bool offered, rules.adapters->offers(task));
  if (offered) out.adapter = task;
  return {};
}

// For pairs of texts, refuses to keep the last tokens: the pair as a whole must fit the model, and the
// tokenizer decides which text is truncated.
Result<> refuse_keep_last(const PoolingFields& fields) {
  if (!fields.keep_last) return {};
  return invalid("truncation_side", "must be \"right\" for pairs of texts");
}

Result<> read_token_limit(Fields& f, std::string_view name, const RequestRules& rules, int& out) {
  TRY_VOID(f.integer(name, out));
  if (out < 0) return invalid(name, "{} must be a non-negative integer, got {}", name, out);
  if (out == 0 || out < rules.max_model_len) return {};
  return invalid(name, "{} must be less than max_model_len {}, got {}", name, rules.max_model_len, out);
}

// Reads the options of vLLM, Cohere and Qwen's rerankers. `instruction` is an argument of the chat template.
Result<> read_pair_options(Fields& f, const RequestRules& rules, PairOptions& out) {
  TRY_VOID(read_token_limit(f, "max_tokens_per_query", rules, out.tokens_per_query));
  TRY_VOID(read_token_limit(f, "max_tokens_per_doc", rules, out.tokens_per_document));
  TRY(const json::object* given, f.object("chat_template_kwargs"));
  json::object kwargs = given ? *given : json::object();
  std::string instruction;
  TRY_VOID(f.text("instruction", instruction));
  if (f.any("instruction") && !kwargs.contains("instruction")) kwargs["instruction"] = instruction;
  if (!kwargs.empty()) out.template_kwargs = exact_json_text(kwargs);
  return {};
}

void finish_pooling_fields(const Fields& f, PoolingFields& out) { out.unknown_fields = f.unread(); }

Result<std::string> item_text(const json::value& item, std::string_view field) {
  if (item.is_string()) return std::string(item.get_string());
  if (const json::object* object = item.if_object())
    if (const json::value* text = object->if_contains("text"); text && text->is_string())
      return std::string(text->get_string());
  return invalid(field, "must be a string or a list of strings");
}

Result<std::vector<std::string>> read_texts(Fields& f, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const json::value* found = f.any(name);
    if (!found) continue;
    std::vector<std::string> texts;
    if (!found->is_array()) {
      TRY(texts.emplace_back(), item_text(*found, name));
      return texts;
    }
    const json::array& items = found->get_array();
    if (items.empty()) return invalid(name, "must not be empty");
    if (items.size() > static_cast<std::size_t>(kTextsMax))
      return invalid(name, "must have at most {} texts, got {}", kTextsMax, items.size());
    for (const json::value& item : items) {
      TRY(texts.emplace_back(), item_text(item, name));
    }
    return texts;
  }
  return invalid(*names.begin(), "is missing");
}

constexpr std::array<std::string_view, 5> kJinaTasks{"retrieval.query", "retrieval.passage", "text-matching",
                                                     "classification", "separation"};

// Reads texts, token ids, or Jina's objects {"text": ..}.
Result<std::vector<TextOrTokens>> read_input(Fields& f) {
  const json::value* input = f.any("input");
  const bool objects = input != nullptr && input->is_array() && !input->get_array().empty() &&
                       input->get_array().front().is_object();
  if (!objects) return read_prompts(f, "input", kTextsMax);
  TRY(std::vector<std::string> texts, read_texts(f, {"input"}));
  return std::vector<TextOrTokens>(std::make_move_iterator(texts.begin()),
                                   std::make_move_iterator(texts.end()));
}

Result<std::vector<EmbedByTypeRequest::Type>> read_types(Fields& f) {
  using Type = EmbedByTypeRequest::Type;
  const json::value* found = f.any("embedding_types");
  if (!found) return std::vector{Type::float32};
  std::vector<Type> types;
  for (const json::value& item : found->is_array() ? found->get_array() : json::array{*found}) {
    const std::string_view name = item.is_string() ? std::string_view(item.get_string()) : "";
    constexpr std::array kNames{std::pair{std::string_view("float"), Type::float32},
                                std::pair{std::string_view("base64"), Type::base64},
                                std::pair{std::string_view("binary"), Type::binary},
                                std::pair{std::string_view("ubinary"), Type::ubinary}};
    const auto* const known = std::ranges::find(kNames, name, [](const auto& pair) { return pair.first; });
    if (known == kNames.end())
      return invalid("embedding_types", "must be a list of \"float\", \"base64\", \"binary\" or \"ubinary\"");
    if (std::ranges::find(types, known->second) == types.end()) types.push_back(known->second);
  }
  if (types.empty()) types = {Type::float32};
  return types;
}

// Returns the concatenated texts of {"content": [{"type": "text", "text": ..}]}.
Result<std::string> text_of_content(const json::value& item) {
  const json::object* object = item.if_object();
  const json::value* content = object != nullptr ? object->if_contains("content") : nullptr;
  if (content == nullptr || !content->is_array())
    return invalid("inputs", "must be a list of {{\"content\": [..]}}");
  std::string text;
  for (const json::value& part : content->get_array()) {
    const json::object* fields = part.if_object();
    const json::value* type = fields != nullptr ? fields->if_contains("type") : nullptr;
    if (type == nullptr || *type != "text") return invalid("inputs", "must have only parts of type \"text\"");
    TRY(const std::string more, item_text(part, "inputs"));
    text += text.empty() ? more : "\n" + more;
  }
  return text;
}

}  // namespace

Result<EmbeddingRequest> parse_embedding_request(const json::object& body, const RequestRules& rules) {
  EmbeddingRequest request;
  Fields f(body);
  const bool chat = f.any("messages") != nullptr;
  // The chat template writes the special tokens, so the tokenizer must not add them.
  request.fields.add_special_tokens = !chat;
  TRY_VOID(read_pooling_fields(f, rules, request.fields));
  if (chat && f.any("input") != nullptr) return invalid("messages", "cannot be combined with input");
  if (chat) {
    TRY(request.chat, read_chat_prompt(f, rules, false));
  } else {
    TRY(request.input, read_input(f));
  }
  std::string format = "float";
  TRY_VOID(f.text("embedding_type", format));  // Jina's name of encoding_format
  TRY_VOID(f.text("encoding_format", format));
  if (format != "float" && format != "base64")
    return invalid("encoding_format", "must be \"float\" or \"base64\", got \"{}\"", format);
  request.base64 = format == "base64";
  TRY_VOID(f.refuse("embed_dtype", "must be float32: other formats of numbers are not supported", "float32"));
  std::string order = "native";
  TRY_VOID(f.text("endianness", order));
  if (order != "native" && order != "little")
    return invalid("endianness", "must be native or little, got \"{}\"", order.substr(0, 32));
  TRY_VOID(f.integer("dimensions", request.dimensions, 1));
  std::string task;
  TRY_VOID(f.text("task", task));
  request.task = task_named(task);
  if (std::ranges::find(kJinaTasks, task) != kJinaTasks.end())
    request.input_type = task;
  else if (!task.empty() && !request.task)
    return invalid("task", "must be {}, or one of Jina's: {}", kTaskNames, fmt::join(kJinaTasks, ", "));
  TRY_VOID(take_adapter_of(request.input_type, rules, request.fields));
  finish_pooling_fields(f, request.fields);
  return request;
}

Result<EmbedByTypeRequest> parse_embed_by_type_request(const json::object& body, const RequestRules& rules) {
  EmbedByTypeRequest request;
  Fields f(body);
  TRY_VOID(read_pooling_fields(f, rules, request.fields));
  TRY_VOID(f.refuse("images", "is not supported: send texts"));
  if (const json::value* inputs = f.any("inputs")) {
    if (!inputs->is_array() || inputs->get_array().empty() ||
        inputs->get_array().size() > static_cast<std::size_t>(kTextsMax))
      return invalid("inputs", "must be a list of 1 to {}", kTextsMax);
    for (const json::value& item : inputs->get_array()) {
      TRY(request.texts.emplace_back(), text_of_content(item));
    }
  } else {
    TRY(request.texts, read_texts(f, {"texts"}));
  }
  TRY(request.types, read_types(f));
  TRY_VOID(f.integer("output_dimension", request.dimensions, 1));
  TRY_VOID(f.text("input_type", request.input_type));
  TRY_VOID(take_adapter_of(request.input_type, rules, request.fields));
  std::string truncate = "END";
  TRY_VOID(f.text("truncate", truncate));
  if (truncate != "END" && truncate != "START" && truncate != "NONE")
    return invalid("truncate", "must be \"END\", \"START\" or \"NONE\", got \"{}\"", truncate);
  const bool cuts = truncate != "NONE";
  if (cuts && !request.fields.truncate) request.fields.truncate = -1;
  if (truncate == "START") request.fields.keep_last = true;
  TRY_VOID(
      f.integer("max_tokens", cuts ? request.fields.truncate : request.tokens_max, 1, rules.max_model_len));
  finish_pooling_fields(f, request.fields);
  return request;
}

Result<ScoreRequest> parse_score_request(const json::object& body, const RequestRules& rules) {
  ScoreRequest request;
  Fields f(body);
  TRY_VOID(read_pooling_fields(f, rules, request.fields));
  TRY_VOID(refuse_keep_last(request.fields));
  TRY_VOID(read_pair_options(f, rules, request.pairs));
  TRY(request.queries, read_texts(f, {"text_1", "queries", "data_1"}));
  TRY(request.documents, read_texts(f, {"text_2", "documents", "items", "data_2"}));
  if (request.queries.size() != 1 && request.queries.size() != request.documents.size())
    return invalid("text_1", "must be one text or the same number of texts as text_2, got {} and {}",
                   request.queries.size(), request.documents.size());
  finish_pooling_fields(f, request.fields);
  return request;
}

Result<RerankRequest> parse_rerank_request(const json::object& body, const RequestRules& rules) {
  RerankRequest request;
  Fields f(body);
  TRY_VOID(read_pooling_fields(f, rules, request.fields));
  TRY_VOID(refuse_keep_last(request.fields));
  const json::value* query = f.any("query");
  if (!query) return invalid("query", "is missing");
  TRY(request.query, item_text(*query, "query"));
  TRY(request.documents, read_texts(f, {"documents"}));
  TRY_VOID(f.integer("top_n", request.top_n, 0));
  TRY_VOID(f.boolean("return_documents", request.return_documents));
  TRY_VOID(read_pair_options(f, rules, request.pairs));
  finish_pooling_fields(f, request.fields);
  return request;
}

}  // namespace octavo::openai
