#include "serve/pooling_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "base/hash.h"
#include "serve/openai/pooling_request.h"
#include "serve/pooling_texts.h"
#include "serve/text_chunks.h"
#include "serve/vector_text.h"

namespace octavo {
namespace {

// Fields that all replies have.
struct Frame {
  std::string id, model;
  std::int64_t tokens = 0;

  std::string operator()(std::string_view data) const {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return fmt::format(
        R"({{"id":{},"object":"list","created":{},"model":{},"data":[{}],)"
        R"("usage":{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":0,"prompt_tokens_details":null}}}})",
        json_text(id), std::chrono::duration_cast<std::chrono::seconds>(now).count(), json_text(model), data,
        tokens, tokens);
  }
};

bool activated(const Service& service, const openai::PoolingFields& fields) {
  return fields.activated.value_or(service.options.pooling.activated.value_or(true));
}

// Applies the model's normalisation or activation for a task. wanted: whether the request wants it.
void activate(const Service& service, Task task, bool wanted, std::span<float> vector) {
  const EngineInfo& info = service.engine_info;
  const TaskRules::TokenHead* own = info.tasks.token_head(task);
  if (task == Task::embed || task == Task::token_embed) {
    if (wanted && (own != nullptr ? own->normalise : info.tasks.normalise)) normalise(vector);
    return;
  }
  const PoolingRules& rules = service.options.pooling;
  for (float& score : vector) score = (score - rules.score_mean) / rules.score_sigma;
  if (wanted) octavo::activate(own != nullptr ? own->activation : info.tasks.score_activation, vector);
}

int size_of(const Service& service, Task task) {
  const std::vector<int>& returned = service.options.pooling.returned;
  return returned.empty() ? service.engine_info.tasks.size_for(task) : static_cast<int>(returned.size());
}

// vectors: several vectors, one after another. Keeps only the first `kept` components of each vector, and
// applies activate() to them.
void activate_each(const Service& service, Task task, bool wanted, std::size_t kept,
                   std::vector<float>& vectors) {
  const auto size = static_cast<std::size_t>(size_of(service, task));
  const std::size_t count = vectors.size() / size;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<float> vector(vectors.data() + i * kept, kept);
    std::copy_n(vectors.begin() + static_cast<std::ptrdiff_t>(i * size), kept, vector.begin());
    activate(service, task, wanted, vector);
  }
  vectors.resize(count * kept);
}

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
  const int size = size_of(service, task);
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
    if (own.size() > 1) activate(service, task, wanted, texts.back());
  }
  return texts;
}

// Returns the names of the tasks that requests to /pooling can have; "" if there are none.
std::string tasks_of(const EngineInfo& info) {
  return task_names([&](Task task) { return info.tasks.does(task); });
}

std::unexpected<Error> no_task(const Service& service, std::string_view what) {
  const std::string tasks = tasks_of(service.engine_info);
  const std::string advice = tasks.empty() ? "use another model, or start the server with --runner pooling"
                                           : fmt::format("send POST /pooling with the task {}", tasks);
  return invalid("model", "{} models do not {}: {}", service.engine_info.architecture, what, advice);
}

// The plan, and the fields that all replies have: after the texts are tokenised, all routes need both.
struct Begun {
  PoolingPlan plan;
  Frame frame;
};
Begun begin_plan(const Service& service, openai::PoolingFields fields, std::string_view id,
                 std::string_view prefix, std::vector<Tokenizer::Texts> texts) {
  std::string own = fields.request_id.empty() ? std::string(id) : std::move(fields.request_id);
  if (own.empty()) own = fmt::format("{:016x}{:016x}", secret_seed(), secret_seed());
  Begun begun{.plan = {.request_id = fmt::format("{}{}", prefix, own),
                       .texts = std::move(texts),
                       .task = service.engine_info.tasks.default_task,
                       .adapter = fields.adapter,
                       .priority = fields.priority,
                       .unknown_fields = std::move(fields.unknown_fields)},
              .frame = {}};
  begun.frame = {.id = begun.plan.request_id,
                 .model = begun.plan.adapter.empty() ? service.options.rules.model_names.front() : begun.plan.adapter,
                 .tokens = begun.plan.tokens()};
  return begun;
}

using Writer = std::string (*)(const Service&, const openai::EmbeddingRequest&, std::size_t index,
                               const std::vector<float>& vector);

// any_task: whether the request may choose any task of the model. whole: writes the reply; null: the reply is
// a Frame.
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
                   any_task ? "must be " + tasks_of(info) : "use POST /pooling");
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
  std::vector<MediaPart> media;
  if (request.chat) {
    TRY(ChatTokens tokens, tokens_of_chat(service, *request.chat, request.fields, longest));
    media = std::move(tokens.images);
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
  Begun begun = begin_plan(service, request.fields, id, prefix, std::move(texts.chunks));
  begun.plan.task = requested;
  begun.plan.media = std::move(media);
  begun.plan.reply = [&service, request = std::move(request), frame = std::move(begun.frame),
                      lengths = std::move(texts.lengths), read = std::move(read), write,
                      whole](Vectors&& chunks) {
    for (std::size_t i = 0; i < read.size(); ++i) choose(service, *request.task, read[i], chunks[i]);
    const Vectors vectors = of_texts(service, *request.task, activated(service, request.fields),
                                     *request.dimensions, lengths, std::move(chunks));
    const std::string data =
        joined(vectors.size(), [&](std::size_t i) { return write(service, request, i, vectors[i]); });
    return whole ? whole(frame.model, frame.tokens, data) : frame(data);
  };
  return std::move(begun.plan);
}

using ScoreReply = std::function<std::string(const Frame&, const std::vector<float>& scores)>;

float cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double product = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return aa * bb == 0 ? 0.0F : static_cast<float>(product / std::sqrt(aa * bb));
}

// Scores two texts that have a vector for each token (MaxSim: Khattab and Zaharia, "ColBERT", 2020). The
// score is the sum, over the query's vectors, of the largest dot product with a vector of the document.
float late_interaction(std::span<const float> query, std::span<const float> document, std::size_t size) {
  double sum = 0;
  for (std::size_t q = 0; q < query.size(); q += size) {
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < document.size(); d += size)
      most = std::max(most, std::inner_product(query.begin() + static_cast<std::ptrdiff_t>(q),
                                               query.begin() + static_cast<std::ptrdiff_t>(q + size),
                                               document.begin() + static_cast<std::ptrdiff_t>(d), 0.0));
    sum += most;
  }
  return static_cast<float>(sum);
}

// Renders a pair with the chat template, as a conversation of "query" and "document" as in vLLM, and
// tokenises it.
Result<Tokenizer::Texts> pair_in_template(const Service& service, const std::string& query,
                                          const std::string& document, const std::string& kwargs,
                                          std::size_t most) {
  const std::string messages =
      fmt::format(R"([{{"role":"query","content":{}}},{{"role":"document","content":{}}}])", json_text(query),
                  json_text(document));
  TRY(const std::string text, service.templates.plain->render(
                                  {.messages = messages, .kwargs = kwargs, .add_generation_prompt = false}));
  Tokenizer::Texts texts;
  TRY(texts.ids, service.tokenizer.encode(text, true));
  texts.ids.resize(std::min(texts.ids.size(), most));
  return texts;
}

// A cross-encoder reads a pair of texts and returns the score. An embedding model reads single texts, and the
// score is the similarity of their vectors.
Result<PoolingPlan> score_pairs(const Service& service, openai::ScoreRequest request, std::string_view id,
                                std::string_view prefix, ScoreReply reply) {
  const EngineInfo& info = service.engine_info;
  if (info.tasks.default_task == Task::generate || info.tasks.default_task == Task::token_classify)
    return no_task(service, "score texts");
  const bool reads_pairs = info.tasks.default_task == Task::classify;
  if (reads_pairs && info.tasks.pooled_size != 1)
    return invalid("model", "scores of text pairs need a model with one label, but this model has {}",
                   info.tasks.pooled_size);
  const auto longest = static_cast<std::size_t>(info.max_model_len);
  TRY(const std::size_t most, most_tokens(request.fields, longest));
  const openai::PairOptions& pairs = request.pairs;
  if (!pairs.template_kwargs.empty() && !(reads_pairs && service.options.pooling.score_template))
    request.fields.unknown_fields.emplace_back("chat_template_kwargs");
  for (std::string& query : request.queries) {
    TRY(query, shortened(service, query, pairs.tokens_per_query));
  }
  for (std::string& document : request.documents) {
    TRY(document, shortened(service, document, pairs.tokens_per_document));
  }
  std::vector<Tokenizer::Texts> texts;
  const auto add = [&](const std::string& first, const std::string* second) -> Result<> {
    if (second != nullptr && service.options.pooling.score_template) {
      TRY(texts.emplace_back(), pair_in_template(service, first, *second, pairs.template_kwargs, most));
    } else {
      TRY(texts.emplace_back(),
          service.tokenizer.encode_texts(
              first, second ? std::optional<std::string_view>(*second) : std::nullopt, most));
    }
    return check_length(texts.back().ids.size(), longest, "documents");
  };
  const std::size_t queries = request.queries.size(), documents = request.documents.size();
  for (std::size_t i = 0; reads_pairs && i < documents; ++i)
    TRY_VOID(add(request.queries[queries == 1 ? 0 : i], &request.documents[i]));
  for (const auto* list : {&request.queries, &request.documents})
    for (const std::string& text : *list)
      if (!reads_pairs) TRY_VOID(add(text, nullptr));
  const bool wanted = activated(service, request.fields);
  Begun begun = begin_plan(service, std::move(request.fields), id, prefix, std::move(texts));
  begun.plan.reply = [&service, frame = std::move(begun.frame), reply = std::move(reply), queries, documents,
                      wanted](Vectors&& vectors) {
    std::vector<float> scores;
    if (service.engine_info.tasks.default_task == Task::classify) {
      for (std::vector<float>& vector : vectors) {
        activate(service, Task::classify, wanted, vector);
        scores.push_back(vector[0]);
      }
    } else {
      const auto size = static_cast<std::size_t>(service.engine_info.tasks.pooled_size);
      const bool of_tokens = service.engine_info.tasks.default_task == Task::token_embed;
      for (std::vector<float>& vector : vectors)
        if (of_tokens) activate_each(service, Task::token_embed, wanted, size, vector);
      for (std::size_t i = 0; i < documents; ++i) {
        const std::vector<float>&query = vectors[queries == 1 ? 0 : i], &document = vectors[queries + i];
        scores.push_back(of_tokens ? late_interaction(query, document, size) : cosine(query, document));
      }
    }
    return reply(frame, scores);
  };
  return std::move(begun.plan);
}

Result<PoolingPlan> plan_vectors(const Service& service, openai::EmbeddingRequest request,
                                 std::string_view id) {
  if (service.engine_info.tasks.default_task == Task::generate)
    return no_task(service, "make vectors of texts");
  return for_each_text(
      service, std::move(request), id, "pool-",
      [](const Service& s, const openai::EmbeddingRequest& done, std::size_t i,
         const std::vector<float>& vector) {
        const int size = *done.dimensions;
        // Weights of tokens are returned as one list of numbers, as in vLLM.
        const bool weights = size == 1 && s.engine_info.tasks.token_head(*done.task) != nullptr;
        const std::string data = done.base64 ? base64(vector)
                                 : is_of_tokens(*done.task) && !weights
                                     ? lists(vector, static_cast<std::size_t>(size))
                                     : numbers(vector);
        return fmt::format(R"({{"index":{},"object":"pooling","data":{}}})", i, data);
      },
      true);
}

Result<PoolingPlan> plan_classes(const Service& service, openai::EmbeddingRequest request,
                                 std::string_view id) {
  if (service.engine_info.tasks.default_task != Task::classify) return no_task(service, "classify texts");
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
  if (service.engine_info.tasks.default_task != Task::embed) return no_task(service, "make vectors of texts");
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
  Begun begun = begin_plan(service, request.fields, id, "embd-", std::move(texts.chunks));
  begun.plan.reply = [&service, kept, request = std::move(request), frame = std::move(begun.frame),
                      lengths = std::move(texts.lengths)](Vectors&& chunks) {
    const Vectors vectors =
        of_texts(service, Task::embed, activated(service, request.fields), kept, lengths, std::move(chunks));
    const std::string embeddings = joined(request.types.size(), [&](std::size_t t) {
      const openai::EmbedByTypeRequest::Type type = request.types[t];
      return fmt::format(R"("{}":[{}])", name_of(type), joined(vectors.size(), [&](std::size_t i) {
                           return vector_text(type, vectors[i]);
                         }));
    });
    return fmt::format(
        R"({{"id":{},"embeddings":{{{}}},"texts":[{}],"response_type":"embeddings_by_type",)"
        R"("meta":{{"api_version":{{"version":"2"}},"billed_units":{{"input_tokens":{},"image_tokens":0}},)"
        R"("tokens":{{"input_tokens":{}}}}}}})",
        json_text(frame.id), embeddings,
        joined(request.texts.size(), [&](std::size_t i) { return json_text(request.texts[i]); }),
        frame.tokens, frame.tokens);
  };
  return std::move(begun.plan);
}

Result<PoolingPlan> plan_scores(const Service& service, openai::ScoreRequest request, std::string_view id) {
  return score_pairs(service, std::move(request), id, "score-",
                     [](const Frame& frame, const std::vector<float>& scores) {
                       return frame(joined(scores.size(), [&](std::size_t i) {
                         return fmt::format(R"({{"index":{},"object":"score","score":{}}})", i, scores[i]);
                       }));
                     });
}

Result<PoolingPlan> plan_ranks(const Service& service, openai::RerankRequest request, std::string_view id) {
  openai::ScoreRequest pairs{.fields = request.fields,
                             .pairs = request.pairs,
                             .queries = {request.query},
                             .documents = request.documents};
  return score_pairs(
      service, std::move(pairs), id, "rerank-",
      [request = std::move(request)](const Frame& frame, const std::vector<float>& scores) {
        std::vector<std::size_t> order(scores.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
        if (request.top_n.value_or(0) > 0)
          order.resize(std::min(order.size(), static_cast<std::size_t>(*request.top_n)));
        const std::string results = joined(order.size(), [&](std::size_t place) {
          const std::size_t i = order[place];
          const std::string document = request.return_documents ? fmt::format(R"("document":{{"text":{}}},)",
                                                                              json_text(request.documents[i]))
                                                                : "";
          return fmt::format(R"({{"index":{},{}"relevance_score":{}}})", i, document, scores[i]);
        });
        return fmt::format(
            R"({{"id":{},"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}},"results":[{}]}})",
            json_text(frame.id), json_text(frame.model), frame.tokens, frame.tokens, results);
      });
}

}  // namespace

Result<PoolingPlan> plan_embeddings(const Service& service, openai::EmbeddingRequest request,
                                    std::string_view id, VectorsReply whole) {
  if (service.engine_info.tasks.default_task != Task::embed) return no_task(service, "make vectors of texts");
  const Writer list = [](const Service&, const openai::EmbeddingRequest&, std::size_t,
                         const std::vector<float>& vector) { return numbers(vector); };
  const Writer item = [](const Service&, const openai::EmbeddingRequest& done, std::size_t i,
                         const std::vector<float>& vector) {
    return fmt::format(R"({{"index":{},"object":"embedding","embedding":{}}})", i,
                       done.base64 ? base64(vector) : numbers(vector));
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
