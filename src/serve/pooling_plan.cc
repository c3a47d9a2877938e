#include "serve/pooling_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "serve/late_chunks.h"
#include "serve/openai/pooling_request.h"
#include "serve/pooling_parts.h"
#include "serve/pooling_texts.h"
#include "serve/score_plan.h"
#include "serve/text_chunks.h"
#include "serve/vector_text.h"

namespace octavo {
namespace {

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
  const TaskRules& tasks = service.engine_info.tasks;
  const bool weights = *request.dimensions == 1 && tasks.default_task == Task::embed &&
                       tasks.token_head(*request.task) != nullptr;
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

// The texts of a request as tokens.
struct ReadTexts {
  TextChunks texts;
  std::vector<std::vector<MediaPart>> media;
  std::vector<LateChunks> late;  // chunks of each text; empty without late chunking
};

// Tokenises the inputs or the chat of the request, and removes them from the request.
Result<ReadTexts> read_texts(const Service& service, openai::EmbeddingRequest& request) {
  ReadTexts read;
  const std::size_t longest = longest_text(service, *request.task);
  const auto add = [&](Tokenizer::Texts text) {
    read.texts.add(std::move(text), static_cast<std::size_t>(service.engine_info.max_model_len));
  };
  const std::string_view prompt = prompt_for(service, request.input_type);
  for (openai::TextOrTokens& input : request.input) {
    auto* const text = std::get_if<std::string>(&input);
    if (text != nullptr) text->insert(0, prompt);
    TRY(Tokenizer::Texts tokens, tokens_of(service, input, request.fields, longest));
    if (request.late_chunk_size) {
      TRY(read.late.emplace_back(), late_chunks_of(service, *text, request.fields.add_special_tokens,
                                                   tokens.ids.size(), *request.late_chunk_size));
    }
    add(std::move(tokens));
  }
  if (request.chat) {
    TRY(ChatTokens tokens, tokens_of_chat(service, *request.chat, request.fields, longest));
    read.media.push_back(std::move(tokens.images));
    add({.ids = std::move(tokens.ids), .second = std::nullopt});
  }
  request.input.clear();
  request.chat.reset();
  return read;
}

// Sets the request's task. usual: the task of a request that names none. any_task: whether the request may
// choose any task of the model.
Result<> set_task(const Service& service, Task usual, bool any_task, openai::EmbeddingRequest& request) {
  const EngineInfo& info = service.engine_info;
  const Task requested = request.task.value_or(usual);
  request.task = requested;
  const std::string_view name = task_name(requested);
  if (!any_task && requested != usual)
    return invalid("task", "\"{}\" is not supported by {} models on this route: use POST /pooling", name,
                   info.architecture);
  if (info.tasks.does(requested)) return {};
  return failure(ErrorCode::invalid_argument,  // vLLM's words
                 "Unsupported task: '{}' is not a task of {} models: task must be {}", name,
                 info.architecture, pooling_tasks(info));
}

// any_task: see set_task(). whole: writes the reply; null: the reply is a PoolingFrame.
Result<PoolingPlan> for_each_text(const Service& service, openai::EmbeddingRequest request,
                                  std::string_view id, std::string_view prefix, Writer write, Task usual,
                                  bool any_task = false, VectorsReply whole = nullptr) {
  TRY_VOID(set_task(service, usual, any_task, request));
  const Task task = *request.task;
  TRY(request.dimensions, kept_of(service, task, request.dimensions, "dimensions"));
  TRY_VOID(check_late_chunking(service, request, task));
  TRY(ReadTexts read, read_texts(service, request));
  // Tokens of each text, for choose().
  std::vector<std::vector<TokenId>> tokens;
  if (is_of_tokens(task) && read.late.empty())
    for (const Tokenizer::Texts& text : read.texts.chunks) tokens.push_back(text.ids);
  BegunPooling begun = begin_pooling(service, request.fields, id, prefix, std::move(read.texts.chunks));
  begun.plan.task = task;
  begun.plan.media = std::move(read.media);
  begun.plan.reply = [&service, request = std::move(request), frame = std::move(begun.frame),
                      lengths = std::move(read.texts.lengths), late = std::move(read.late),
                      tokens = std::move(tokens), write, whole](Vectors&& chunks) {
    for (std::size_t i = 0; i < tokens.size(); ++i) choose(service, *request.task, tokens[i], chunks[i]);
    for (std::size_t i = 0; i < late.size(); ++i)
      chunks[i] = late[i].means(chunks[i],
                                static_cast<std::size_t>(service.engine_info.tasks.size_for(*request.task)));
    const Vectors vectors = of_texts(service, *request.task, is_activated(service, request.fields),
                                     *request.dimensions, lengths, std::move(chunks));
    if (request.format.is_binary()) return binary_reply(service, request, frame, vectors);
    const std::string data = joined(vectors.size(), [&](std::size_t i) {
      std::string item = write(service, request, i, vectors[i]);
      if (!late.empty()) item.insert(item.size() - 1, fmt::format(R"(,"late_chunking":{})", late[i].json()));
      return item;
    });
    return http::Response{.body = whole ? whole(frame.model, frame.tokens, data) : frame(data)};
  };
  return std::move(begun.plan);
}

// Returns the vectors of a text in the format of the request.
std::string data_text(const Service& service, const openai::EmbeddingRequest& request,
                      const std::vector<float>& vector) {
  if (request.format.form == openai::VectorFormat::Form::base64) return base64(vector, request.format);
  return is_list_of_vectors(service, request) ? lists(vector, static_cast<std::size_t>(*request.dimensions))
                                              : numbers(vector);
}

Result<PoolingPlan> plan_vectors(const Service& service, openai::EmbeddingRequest request,
                                 std::string_view id) {
  const Task usual = service.engine_info.tasks.default_task;
  if (usual == Task::generate) return no_pooling(service, "make vectors of texts");
  const Writer item = [](const Service& s, const openai::EmbeddingRequest& done, std::size_t i,
                         const std::vector<float>& vector) {
    return fmt::format(R"({{"index":{},"object":"pooling","data":{}}})", i, data_text(s, done, vector));
  };
  return for_each_text(service, std::move(request), id, "pooling-", item,
                       service.options.pooling.task.value_or(usual), true);
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
      },
      Task::classify);
}

Result<> check_tokens_max(const openai::EmbedByTypeRequest& request, std::size_t tokens) {
  if (!request.tokens_max || std::cmp_less_equal(tokens, *request.tokens_max)) return {};
  return invalid("max_tokens",
                 "is {}, but a text has {} tokens: set truncate to END or START, or shorten the text",
                 *request.tokens_max, tokens);
}

// Tokenises the conversations, or the texts if the model has no chat template.
Result<ReadTexts> read_inputs(const Service& service, openai::EmbedByTypeRequest& request) {
  ReadTexts read;
  const std::size_t longest = longest_text(service, Task::embed);
  const std::string_view prompt = prompt_for(service, request.input_type);
  const auto add = [&](Tokenizer::Texts text, std::vector<MediaPart> media) -> Result<> {
    TRY_VOID(check_tokens_max(request, text.ids.size()));
    const std::size_t first = read.texts.chunks.size();
    read.texts.add(std::move(text), static_cast<std::size_t>(service.engine_info.max_model_len));
    read.media.resize(read.texts.chunks.size());
    read.media[first] = std::move(media);
    return {};
  };
  if (!request.chats.empty() && (service.templates.plain != nullptr || !request.media.empty())) {
    auto next = request.media.begin();
    openai::PoolingFields fields = request.fields;
    fields.add_special_tokens = false;  // the template writes them
    for (openai::ChatPrompt& chat : request.chats) {
      for (openai::ChatPrompt::Media& one : chat.media) one = std::move(*next++);
      if (!prompt.empty())
        chat.messages.insert(1, fmt::format(R"({{"role":"system","content":{}}},)", json_text(prompt)));
      TRY(ChatTokens tokens, tokens_of_chat(service, chat, fields, longest));
      TRY_VOID(add({.ids = std::move(tokens.ids), .second = std::nullopt}, std::move(tokens.images)));
    }
    return read;
  }
  for (const std::string& text : request.texts) {
    TRY(Tokenizer::Texts tokens,
        tokens_of(service, fmt::format("{}{}", prompt, text), request.fields, longest, "texts"));
    TRY_VOID(add(std::move(tokens), {}));
  }
  return read;
}

Result<PoolingPlan> plan_embed_by_type(const Service& service, openai::EmbedByTypeRequest request,
                                       std::string_view id) {
  if (vectors_task(service) != Task::embed) return no_pooling(service, "make vectors of texts");
  TRY(const int kept, kept_of(service, Task::embed, request.dimensions, "output_dimension"));
  TRY_VOID(check_input_type(service, request));
  TRY(ReadTexts read, read_inputs(service, request));
  const bool images = !request.media.empty();
  request.chats.clear();
  request.media.clear();
  BegunPooling begun = begin_pooling(service, request.fields, id, "embd-", std::move(read.texts.chunks));
  begun.plan.task = Task::embed;
  begun.plan.media = std::move(read.media);
  begun.plan.reply = [&service, kept, images, request = std::move(request), frame = std::move(begun.frame),
                      lengths = std::move(read.texts.lengths)](Vectors&& chunks) {
    const Vectors vectors = of_texts(service, Task::embed, is_activated(service, request.fields), kept,
                                     lengths, std::move(chunks));
    const std::string embeddings = joined(request.types.size(), [&](std::size_t t) {
      const openai::EmbedByTypeRequest::Type type = request.types[t];
      return fmt::format(R"("{}":[{}])", name_of(type), joined(vectors.size(), [&](std::size_t i) {
                           return vector_text(type, vectors[i]);
                         }));
    });
    const std::string texts =
        joined(request.texts.size(), [&](std::size_t i) { return json_text(request.texts[i]); });
    return http::Response{
        .body = fmt::format(
            R"({{"id":{},"embeddings":{{{}}},{}"response_type":"embeddings_by_type",)"
            R"("meta":{{"api_version":{{"version":"2"}},"billed_units":{{"input_tokens":{},"image_tokens":{}}},)"
            R"("tokens":{{"input_tokens":{}}}}}}})",
            json_text(frame.id), embeddings, texts.empty() ? "" : fmt::format(R"("texts":[{}],)", texts),
            images ? 0 : frame.tokens, images ? frame.tokens : 0, frame.tokens)};
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

Result<> check_embeddings(const Service& service, VectorsReply whole) {
  const Task task = vectors_task(service);
  if (task == Task::embed || (task == Task::token_embed && whole == nullptr)) return {};
  return no_pooling(service, "make vectors of texts");
}

Result<PoolingPlan> plan_embeddings(const Service& service, openai::EmbeddingRequest request,
                                    std::string_view id, VectorsReply whole) {
  TRY_VOID(check_embeddings(service, whole));
  const Task task = vectors_task(service);
  const Writer list = [](const Service&, const openai::EmbeddingRequest&, std::size_t,
                         const std::vector<float>& vector) { return numbers(vector); };
  const Writer item = [](const Service& s, const openai::EmbeddingRequest& done, std::size_t i,
                         const std::vector<float>& vector) {
    return fmt::format(R"({{"index":{},"object":"embedding","embedding":{}}})", i,
                       data_text(s, done, vector));
  };
  return for_each_text(service, std::move(request), id, "embd-", whole ? list : item, task, false, whole);
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
