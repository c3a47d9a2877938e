#include "serve/pooling_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "serve/openai/pooling_request.h"
#include "serve/pooling_parts.h"
#include "serve/pooling_texts.h"
#include "serve/score_plan.h"
#include "serve/text_chunks.h"
#include "serve/vector_text.h"

namespace octavo {
namespace {

// Keeps the token vectors and components that PoolingRules and the model's TokenHead select.
void choose(const Service& service, Task task, std::span<const TokenId> ids, std::vector<float>& vectors) {
  const PoolingRules& rules = service.options.pooling;
  const TaskRules::TokenHead* head = service.engine_info.tasks.token_head(task);
  const auto size = static_cast<std::size_t>(service.engine_info.tasks.size_for(task));
  std::vector<float> chosen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (rules.step_tag && ids[i] != *rules.step_tag) continue;
    if (head != nullptr && i == 0 && ids[i] == head->left_out_first) continue;
    if (head != nullptr && i + 1 == ids.size() && ids[i] == head->left_out_last) continue;
    const std::span<const float> vector = std::span(vectors).subspan(i * size, size);
    if (rules.returned.empty()) chosen.insert(chosen.end(), vector.begin(), vector.end());
    for (const int index : rules.returned) chosen.push_back(vector[static_cast<std::size_t>(index)]);
  }
  vectors = std::move(chosen);
}

Result<int> kept_of(const Service& service, Task task, std::optional<int> requested, std::string_view field) {
  const int size = vector_size(service, task);
  if (requested && *requested > size) return invalid(field, "must be at most {}, got {}", size, *requested);
  return requested.value_or(std::min(size, service.options.pooling.dimensions.value_or(size)));
}

// Combines the vectors of chunks to one vector for each text, and applies activate_each().
Vectors of_texts(const Service& service, Task task, bool wanted, int kept,
                 std::span<const std::vector<int>> lengths, Vectors&& chunks) {
  for (std::vector<float>& chunk : chunks)
    activate_each(service, task, wanted, static_cast<std::size_t>(kept), chunk);
  if (lengths.size() == chunks.size()) return std::move(chunks);
  Vectors texts;
  std::span<const std::vector<float>> rest = chunks;
  for (const std::vector<int>& own : lengths) {
    texts.push_back(mean_of_chunks(rest.first(own.size()), own));
    rest = rest.subspan(own.size());
    if (own.size() > 1) activate_vector(service, task, wanted, texts.back());
  }
  return texts;
}

// Returns whether the reply has several vectors for one text. Weights of tokens are one list of numbers, as
// in vLLM.
bool is_list_of_vectors(const Service& service, const openai::EmbeddingRequest& request) {
  const bool weights =
      *request.dimensions == 1 && service.engine_info.tasks.token_head(*request.task) != nullptr;
  return is_of_tokens(*request.task) && !weights;
}

using Writer = std::string (*)(const Service&, const openai::EmbeddingRequest&, std::size_t index,
                               const std::vector<float>& vector);

// Returns the body of a binary reply: the numbers of all vectors. The header `metadata` describes each of
// them, as in vLLM.
http::Response binary_reply(const Service& service, const openai::EmbeddingRequest& request,
                            const PoolingFrame& frame, const Vectors& vectors) {
  using Format = openai::VectorFormat;
  const Format& format = request.format;
  http::Response response{.content_type = "application/octet-stream"};
  const auto size = static_cast<std::size_t>(*request.dimensions);
  const std::string items = joined(vectors.size(), [&](std::size_t i) {
    const std::size_t start = response.body.size();
    response.body += packed(vectors[i], format);
    const std::string rows =
        is_list_of_vectors(service, request) ? fmt::format("{},", vectors[i].size() / size) : "";
    return fmt::format(
        R"({{"index":{},"embed_dtype":"{}","endianness":"{}","start":{},"end":{},"shape":[{}{}]}})", i,
        Format::kNumbers[static_cast<std::size_t>(format.number)],
        Format::kOrders[static_cast<std::size_t>(format.order)], start, response.body.size(), rows,
        rows.empty() ? vectors[i].size() : size);
  });
  if (format.form == Format::Form::bytes) response.headers.set("metadata", frame(items));
  return response;
}

// any_task: whether the request may choose any task of the model. whole: writes the reply; null: the reply is
// a PoolingFrame.
Result<PoolingPlan> for_each_text(const Service& service, openai::EmbeddingRequest request,
                                  std::string_view id, std::string_view prefix, Writer write,
                                  bool any_task = false, VectorsReply whole = nullptr) {
  const EngineInfo& info = service.engine_info;
  const Task usual =
      any_task ? service.options.pooling.task.value_or(info.tasks.default_task) : info.tasks.default_task;
  const Task requested = request.task.value_or(usual);
  if (any_task ? !info.tasks.does(requested) : requested != info.tasks.default_task)
    return invalid("task", "{} is not supported by {} models on this route: {}",
                   task_names([&](Task task) { return task == requested; }), info.architecture,
                   any_task ? "must be " + pooling_tasks(info) : "use POST /pooling");
  request.task = requested;
  TRY(request.dimensions, kept_of(service, requested, request.dimensions, "dimensions"));
  const std::size_t longest = longest_text(service, requested);
  TextChunks texts;
  const auto add = [&](Tokenizer::Texts text) {
    texts.add(std::move(text), static_cast<std::size_t>(service.engine_info.max_model_len));
  };
  const std::string_view prompt = prompt_for(service, request.input_type);
  for (openai::TextOrTokens& input : request.input) {
    if (auto* const text = std::get_if<std::string>(&input)) text->insert(0, prompt);
    TRY(Tokenizer::Texts text, tokens_of(service, input, request.fields, longest));
    add(std::move(text));
  }
  std::vector<std::vector<MediaPart>> media;
  if (request.chat) {
    TRY(ChatTokens tokens, tokens_of_chat(service, *request.chat, request.fields, longest));
    media.push_back(std::move(tokens.images));
    add({.ids = std::move(tokens.ids), .second = std::nullopt});
  }
  request.input.clear();
  request.chat.reset();
  // Tokens of each text, for choose(). Empty if the vectors of all tokens are returned.
  std::vector<std::vector<TokenId>> read;
  if (const PoolingRules& rules = service.options.pooling;
      is_of_tokens(requested) &&
      (rules.step_tag || !rules.returned.empty() || info.tasks.token_head(requested) != nullptr))
    for (const Tokenizer::Texts& text : texts.chunks) read.push_back(text.ids);
  BegunPooling begun = begin_pooling(service, request.fields, id, prefix, std::move(texts.chunks));
  begun.plan.task = requested;
  begun.plan.media = std::move(media);
  begun.plan.reply = [&service, request = std::move(request), frame = std::move(begun.frame),
                      lengths = std::move(texts.lengths), read = std::move(read), write,
                      whole](Vectors&& chunks) {
    for (std::size_t i = 0; i < read.size(); ++i) choose(service, *request.task, read[i], chunks[i]);
    const Vectors vectors = of_texts(service, *request.task, is_activated(service, request.fields),
                                     *request.dimensions, lengths, std::move(chunks));
    if (request.format.is_binary()) return binary_reply(service, request, frame, vectors);
    const std::string data =
        joined(vectors.size(), [&](std::size_t i) { return write(service, request, i, vectors[i]); });
    return http::Response{.body = whole ? whole(frame.model, frame.tokens, data) : frame(data)};
  };
  return std::move(begun.plan);
}

Result<PoolingPlan> plan_vectors(const Service& service, openai::EmbeddingRequest request,
                                 std::string_view id) {
  if (service.engine_info.tasks.default_task == Task::generate)
    return no_pooling(service, "make vectors of texts");
  return for_each_text(
      service, std::move(request), id, "pool-",
      [](const Service& s, const openai::EmbeddingRequest& done, std::size_t i,
         const std::vector<float>& vector) {
        const std::string data =
            done.format.form == openai::VectorFormat::Form::base64 ? base64(vector, done.format)
            : is_list_of_vectors(s, done) ? lists(vector, static_cast<std::size_t>(*done.dimensions))
                                          : numbers(vector);
        return fmt::format(R"({{"index":{},"object":"pooling","data":{}}})", i, data);
      },
      true);
}

Result<PoolingPlan> plan_classes(const Service& service, openai::EmbeddingRequest request,
                                 std::string_view id) {
  if (service.engine_info.tasks.default_task != Task::classify) return no_pooling(service, "classify texts");
  request.format = {};  // the route always returns lists
  return for_each_text(
      service, std::move(request), id, "classify-",
      [](const Service& s, const openai::EmbeddingRequest&, std::size_t i, const std::vector<float>& scores) {
        const auto best = std::ranges::max_element(scores) - scores.begin();
        return fmt::format(R"({{"index":{},"label":{},"probs":{},"num_classes":{}}})", i,
                           json_text(s.engine_info.tasks.labels[static_cast<std::size_t>(best)]),
                           numbers(scores), scores.size());
      });
}

Result<PoolingPlan> plan_embed_by_type(const Service& service, openai::EmbedByTypeRequest request,
                                       std::string_view id) {
  if (service.engine_info.tasks.default_task != Task::embed)
    return no_pooling(service, "make vectors of texts");
  TRY(const int kept, kept_of(service, Task::embed, request.dimensions, "output_dimension"));
  TRY_VOID(check_input_type(service, request));
  const std::string_view prompt = prompt_for(service, request.input_type);
  TextChunks texts;
  for (const std::string& text : request.texts) {
    TRY(Tokenizer::Texts tokens, tokens_of(service, fmt::format("{}{}", prompt, text), request.fields,
                                           longest_text(service, Task::embed), "texts"));
    if (request.tokens_max && std::ssize(tokens.ids) > *request.tokens_max)
      return invalid("max_tokens",
                     "is {}, but a text has {} tokens: set truncate to END or START, or shorten the text",
                     *request.tokens_max, tokens.ids.size());
    texts.add(std::move(tokens), static_cast<std::size_t>(service.engine_info.max_model_len));
  }
  BegunPooling begun = begin_pooling(service, request.fields, id, "embd-", std::move(texts.chunks));
  begun.plan.reply = [&service, kept, request = std::move(request), frame = std::move(begun.frame),
                      lengths = std::move(texts.lengths)](Vectors&& chunks) {
    const Vectors vectors = of_texts(service, Task::embed, is_activated(service, request.fields), kept,
                                     lengths, std::move(chunks));
    const std::string embeddings = joined(request.types.size(), [&](std::size_t t) {
      const openai::EmbedByTypeRequest::Type type = request.types[t];
      return fmt::format(R"("{}":[{}])", name_of(type), joined(vectors.size(), [&](std::size_t i) {
                           return vector_text(type, vectors[i]);
                         }));
    });
    return http::Response{
        .body = fmt::format(
            R"({{"id":{},"embeddings":{{{}}},"texts":[{}],"response_type":"embeddings_by_type",)"
            R"("meta":{{"api_version":{{"version":"2"}},"billed_units":{{"input_tokens":{},"image_tokens":0}},)"
            R"("tokens":{{"input_tokens":{}}}}}}})",
            json_text(frame.id), embeddings,
            joined(request.texts.size(), [&](std::size_t i) { return json_text(request.texts[i]); }),
            frame.tokens, frame.tokens)};
  };
  return std::move(begun.plan);
}

}  // namespace

Request PoolingPlan::take_request(std::size_t text) {
  Request request;
  request.name = request_id;
  request.task = task;
  request.prompt = std::move(texts[text].ids);
  request.second_text = texts[text].second;
  request.priority = priority;
  request.identity.adapter = adapter;
  if (text < media.size()) request.media = std::move(media[text]);
  return request;
}

Result<PoolingPlan> plan_embeddings(const Service& service, openai::EmbeddingRequest request,
                                    std::string_view id, VectorsReply whole) {
  if (service.engine_info.tasks.default_task != Task::embed)
    return no_pooling(service, "make vectors of texts");
  const Writer list = [](const Service&, const openai::EmbeddingRequest&, std::size_t,
                         const std::vector<float>& vector) { return numbers(vector); };
  const Writer item = [](const Service&, const openai::EmbeddingRequest& done, std::size_t i,
                         const std::vector<float>& vector) {
    return fmt::format(R"({{"index":{},"object":"embedding","embedding":{}}})", i,
                       done.format.form == openai::VectorFormat::Form::base64 ? base64(vector, done.format)
                                                                              : numbers(vector));
  };
  return for_each_text(service, std::move(request), id, "embd-", whole ? list : item, false, whole);
}

std::optional<PoolingRoute> pooling_route(std::string_view path) {
  if (path.starts_with("/v1/") || path.starts_with("/v2/")) path.remove_prefix(3);
  if (path == "/embeddings") return PoolingRoute::embeddings;
  if (path == "/embed") return PoolingRoute::embed_by_type;
  if (path == "/pooling") return PoolingRoute::pooling;
  if (path == "/classify") return PoolingRoute::classify;
  if (path == "/score") return PoolingRoute::score;
  if (path == "/rerank") return PoolingRoute::rerank;
  return std::nullopt;
}

Result<openai::PoolingRequest> parse_pooling(PoolingRoute route, const boost::json::object& body,
                                             const openai::RequestRules& rules) {
  switch (route) {
    case PoolingRoute::embeddings:
    case PoolingRoute::pooling:
    case PoolingRoute::classify:
      return openai::parse_embedding_request(body, rules);
    case PoolingRoute::embed_by_type:
      return openai::parse_embed_by_type_request(body, rules);
    case PoolingRoute::score:
      return openai::parse_score_request(body, rules);
    case PoolingRoute::rerank:
      break;
  }
  return openai::parse_rerank_request(body, rules);
}

Result<PoolingPlan> plan_pooling(const Service& service, PoolingRoute route, openai::PoolingRequest request,
                                 std::string_view id) {
  if (auto* const types = std::get_if<openai::EmbedByTypeRequest>(&request))
    return plan_embed_by_type(service, std::move(*types), id);
  if (auto* const pairs = std::get_if<openai::ScoreRequest>(&request))
    return plan_scores(service, std::move(*pairs), id);
  if (auto* const ranks = std::get_if<openai::RerankRequest>(&request))
    return plan_ranks(service, std::move(*ranks), id);
  auto& texts = std::get<openai::EmbeddingRequest>(request);
  if (route == PoolingRoute::pooling) return plan_vectors(service, std::move(texts), id);
  if (route == PoolingRoute::classify) return plan_classes(service, std::move(texts), id);
  return plan_embeddings(service, std::move(texts), id);
}

}  // namespace octavo
