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

// Sets `out` if the text field is one of the names.
template <class Value, std::size_t kCount>
Result<> read_name(Fields& f, std::string_view field, const std::string_view (&names)[kCount], Value& out) {
  if (f.any(field) == nullptr) return {};
  std::string name;
  TRY_VOID(f.text(field, name));
  const auto found = std::ranges::find(names, name);
  if (found == std::end(names))
    return invalid(field, "must be one of {}; got \"{}\"", fmt::join(names, ", "), name.substr(0, 100));
  out = static_cast<Value>(found - std::begin(names));
  return {};
}

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
  constexpr std::string_view kPaddings[] = {"do_not_pad", "max_length"};
  TRY_VOID(read_name(f, "padding", kPaddings, out.pad));
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
// tokenizer decides which text is truncated. Also refuses padding.
Result<> check_pair_fields(const PoolingFields& fields) {
  if (fields.pad) return invalid("padding", "must be \"do_not_pad\" for pairs of texts");
  if (!fields.keep_last) return {};
  return invalid("truncation_side", "must be \"right\" for pairs of texts");
}

// A cross-encoder reads the query's media again with each document.
Result<> check_scored_media(const ScoreRequest& request) {
  const std::size_t once = request.queries.size() == 1 ? request.queries.front().media : 0;
  const std::size_t all = request.media.size() + once * (request.documents.size() - 1);
  if (all <= kScoredMediaMax) return {};
  return invalid(
      request.media.back().field,
      "the prompts of all pairs may have at most {} images and videos, got {}: send fewer documents",
      kScoredMediaMax, all);
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

// The value of a field, which is one item or a list of items.
struct TextList {
  std::string field;
  std::vector<const json::value*> items;
  bool single = false;
};

// Returns the first of these fields that the body has.
Result<TextList> find_texts(Fields& f, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const json::value* found = f.any(name);
    if (!found) continue;
    TextList list{.field = std::string(name), .items = {}, .single = !found->is_array()};
    if (list.single) {
      list.items = {found};
      return list;
    }
    const json::array& items = found->get_array();
    if (items.empty()) return invalid(name, "must not be empty");
    if (items.size() > static_cast<std::size_t>(kTextsMax))
      return invalid(name, "must have at most {} texts, got {}", kTextsMax, items.size());
    for (const json::value& item : items) list.items.push_back(&item);
    return list;
  }
  return invalid(*names.begin(), "is missing");
}

Result<std::vector<std::string>> read_texts(Fields& f, std::initializer_list<std::string_view> names) {
  TRY(const TextList given, find_texts(f, names));
  std::vector<std::string> texts;
  for (const json::value* item : given.items) {
    TRY(texts.emplace_back(), item_text(*item, given.field));
  }
  return texts;
}

Result<VectorFormat> read_format(Fields& f) {
  VectorFormat format;
  TRY_VOID(read_name(f, "embedding_type", VectorFormat::kForms, format.form));  // Jina's name
  TRY_VOID(read_name(f, "encoding_format", VectorFormat::kForms, format.form));
  TRY_VOID(read_name(f, "embed_dtype", VectorFormat::kNumbers, format.number));
  TRY_VOID(read_name(f, "endianness", VectorFormat::kOrders, format.order));
  return format;
}

// Reads late_chunking_params, {"chunk_size": tokens}.
Result<> read_late_chunking(Fields& f, std::optional<std::int64_t>& size) {
  TRY(const json::object* given, f.object("late_chunking_params"));
  if (given == nullptr) return {};
  Fields fields(*given, "late_chunking_params.");
  TRY_VOID(fields.integer64("chunk_size", size));
  if (size.value_or(0) < 1)
    return invalid("late_chunking_params.chunk_size", "must be at least 1, got {}", size.value_or(0));
  if (const auto unread = fields.unread(); !unread.empty())
    return invalid("late_chunking_params", "has the unknown field {}: it has only chunk_size",
                   unread.front());
  return {};
}

constexpr std::array<std::string_view, 5> kJinaTasks{"retrieval.query", "retrieval.passage", "text-matching",
                                                     "classification", "separation"};

// Reads a text, {"text": ..}, or {"content": [parts]} with images and videos as in a chat.
Result<ScoreInput> read_score_input(const json::value& item, const std::string& field,
                                    const RequestRules& rules, std::vector<ChatPrompt::Media>& media) {
  const json::object* object = item.if_object();
  const json::value* content = object != nullptr ? object->if_contains("content") : nullptr;
  ScoreInput input{.field = field, .text = {}};
  if (content == nullptr || !content->is_array()) {
    TRY(input.text, item_text(content != nullptr ? *content : item, field));
    return input;
  }
  std::vector<ChatPrompt::Media> own;
  Fields fields(*object, field + ".");
  TRY(const json::value parts, read_content_parts(fields, rules, own));
  bool first = true;
  for (const json::value& part : parts.is_array() ? parts.get_array() : json::array{}) {
    const json::value* text = part.get_object().if_contains("text");
    if (text == nullptr) continue;
    if (!std::exchange(first, false)) input.text += '\n';
    input.text += std::string_view(text->get_string());
  }
  input.media = own.size();
  input.content = *content;
  std::ranges::move(own, std::back_inserter(media));
  return input;
}

Result<std::vector<ScoreInput>> read_score_inputs(Fields& f, std::initializer_list<std::string_view> names,
                                                  const RequestRules& rules,
                                                  std::vector<ChatPrompt::Media>& media) {
  TRY(const TextList given, find_texts(f, names));
  std::vector<ScoreInput> inputs;
  for (std::size_t i = 0; i < given.items.size(); ++i) {
    const std::string field = given.single ? given.field : fmt::format("{}[{}]", given.field, i);
    TRY(inputs.emplace_back(), read_score_input(*given.items[i], field, rules, media));
  }
  return inputs;
}

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

// Returns the texts of a content's parts, each on a line. Returns nullopt if a part is no text.
std::optional<std::string> text_of_content(const json::array& content) {
  std::string text;
  for (const json::value& part : content) {
    const json::object* fields = part.if_object();
    const json::value* words = fields != nullptr ? fields->if_contains("text") : nullptr;
    if (words == nullptr || !words->is_string()) return std::nullopt;
    if (!text.empty()) text += '\n';
    text += std::string_view(words->get_string());
  }
  return text;
}

// field: "images" or "inputs". content: a list of parts, as in a chat.
Result<> add_content(std::string_view field, json::array content, const RequestRules& rules,
                     EmbedByTypeRequest& out) {
  constexpr std::string_view kMessage = "messages[0]";
  const std::string name = fmt::format("{}[{}]", field, out.chats.size());
  const auto rename = [&](std::string& path) {
    if (path.starts_with(kMessage)) path.replace(0, kMessage.size(), name);
  };
  const std::optional<std::string> text = text_of_content(content);
  if (text) out.texts.push_back(*text);
  const json::object body{
      {"messages", json::array{json::object{{"role", "user"}, {"content", std::move(content)}}}}};
  Fields chat(body);
  Result<ChatPrompt> prompt = read_chat_prompt(chat, rules, false);
  if (!prompt) {
    rename(prompt.error().field);
    return std::unexpected(std::move(prompt.error()));
  }
  for (ChatPrompt::Media& one : prompt->media) {
    rename(one.field);
    out.media.push_back(std::move(one));
  }
  if (out.media.size() > kScoredMediaMax)
    return invalid(field, "must have at most {} images, got more: send fewer inputs", kScoredMediaMax);
  out.chats.push_back(*std::move(prompt));
  return {};
}

// Reads `images`, a list of URLs, or `inputs`, a list of {"content": [parts]}.
Result<> read_contents(std::string_view field, const json::value& given, const RequestRules& rules,
                       EmbedByTypeRequest& out) {
  const json::array* items = given.if_array();
  if (items == nullptr || items->empty() || items->size() > static_cast<std::size_t>(kTextsMax))
    return invalid(field, "must be a list of 1 to {}", kTextsMax);
  for (const json::value& item : *items) {
    if (field == "images") {
      if (!item.is_string()) return invalid(field, "must be a list of URLs");
      const json::object image{{"type", "image_url"}, {"image_url", json::object{{"url", item}}}};
      TRY_VOID(add_content(field, {image}, rules, out));
      continue;
    }
    const json::object* object = item.if_object();
    const json::value* content = object != nullptr ? object->if_contains("content") : nullptr;
    if (content == nullptr || !content->is_array() || content->get_array().empty())
      return invalid(field, "must be a list of {{\"content\": [..]}}");
    TRY_VOID(add_content(field, content->get_array(), rules, out));
  }
  if (!out.media.empty()) out.texts.clear();
  return {};
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
  TRY(request.format, read_format(f));
  TRY_VOID(f.integer("dimensions", request.dimensions, 1));
  TRY_VOID(read_late_chunking(f, request.late_chunk_size));
  std::string task;
  TRY_VOID(f.text("task", task));
  request.task = task_named(task);
  if (std::ranges::find(kJinaTasks, task) != kJinaTasks.end())
    request.input_type = task;
  else if (task == "plugin")  // vLLM's words
    return failure(ErrorCode::invalid_argument,
                   "No IOProcessor plugin installed. The task \"plugin\" is not supported: task must be {}",
                   kTaskNames);
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
  const json::value *const images = f.any("images"), *const inputs = f.any("inputs");
  if ((images != nullptr) + (inputs != nullptr) + (f.any("texts") != nullptr) > 1)
    return invalid("texts", "only one of texts, images and inputs may be in a request");
  if (images != nullptr || inputs != nullptr) {
    TRY_VOID(read_contents(images != nullptr ? "images" : "inputs", images != nullptr ? *images : *inputs,
                           rules, request));
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
  TRY_VOID(check_pair_fields(request.fields));
  TRY_VOID(read_pair_options(f, rules, request.pairs));
  TRY(request.queries, read_score_inputs(f, {"text_1", "queries", "data_1"}, rules, request.media));
  TRY(request.documents,
      read_score_inputs(f, {"text_2", "documents", "items", "data_2"}, rules, request.media));
  if (request.queries.size() != 1 && request.queries.size() != request.documents.size())
    return invalid("text_1", "must be one text or the same number of texts as text_2, got {} and {}",
                   request.queries.size(), request.documents.size());
  TRY_VOID(check_scored_media(request));
  finish_pooling_fields(f, request.fields);
  return request;
}

Result<RerankRequest> parse_rerank_request(const json::object& body, const RequestRules& rules) {
  RerankRequest request;
  ScoreRequest& scored = request.scored;
  Fields f(body);
  TRY_VOID(read_pooling_fields(f, rules, scored.fields));
  TRY_VOID(check_pair_fields(scored.fields));
  const json::value* query = f.any("query");
  if (!query) return invalid("query", "is missing");
  TRY(scored.queries.emplace_back(), read_score_input(*query, "query", rules, scored.media));
  TRY(scored.documents, read_score_inputs(f, {"documents"}, rules, scored.media));
  TRY_VOID(f.integer("top_n", request.top_n, 0));
  TRY_VOID(f.boolean("return_documents", request.return_documents));
  TRY_VOID(read_pair_options(f, rules, scored.pairs));
  TRY_VOID(check_scored_media(scored));
  finish_pooling_fields(f, scored.fields);
  return request;
}

}  // namespace octavo::openai
