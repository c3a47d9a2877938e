#include "serve/pooling_plan.h"

#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "serve/openai/pooling_request.h"

namespace octavo {
namespace {

std::string json_text(std::string_view text) { return boost::json::serialize(boost::json::string(text)); }

// What every reply begins with and ends with.
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

// Floats as the shortest text that reads back as the same.
std::string numbers(const std::vector<float>& vector) { return fmt::format("[{}]", fmt::join(vector, ",")); }

// Little-endian floats.
std::string base64(const std::vector<float>& vector) {
  const std::size_t bytes = vector.size() * sizeof(float);
  std::string text((bytes + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(vector.data()), static_cast<int>(bytes));
  text.resize(static_cast<std::size_t>(size));
  return '"' + text + '"';
}

// make(i) for each of `count`, with commas.
template <class Make>
std::string joined(std::size_t count, Make&& make) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) all += ',';
    all += make(i);
  }
  return all;
}

// What the model's numbers become.
void activate(const EngineInfo& info, bool wanted, std::vector<float>& vector) {
  if (!wanted) return;
  if (info.task == Task::classify) return octavo::activate(info.score_activation, vector);
  if (info.normalise) normalise(vector);
}

std::unexpected<Error> no_task(const Service& service, std::string_view what) {
  return invalid("model", "{} models do not {}", service.engine_info.architecture, what);
}

// At most the tokens that the model reads.
std::size_t most_tokens(const Service& service, const openai::PoolingFields& fields) {
  if (!fields.truncate) return kEncodeBytesMax;
  return static_cast<std::size_t>(*fields.truncate == -1 ? service.engine_info.max_model_len
                                                         : *fields.truncate);
}

Result<> check_length(const Service& service, std::size_t tokens, std::string_view field) {
  const auto most = static_cast<std::size_t>(service.engine_info.max_model_len);
  if (tokens == 0) return invalid(field, "a text is empty: at least 1 token is needed");
  if (tokens <= most) return {};
  return invalid(field, "a text has {} tokens, the model reads {}; truncate_prompt_tokens cuts it", tokens,
                 most);
}

Result<Tokenizer::Texts> tokens_of(const Service& service, const openai::TextOrTokens& input,
                                   const openai::PoolingFields& fields) {
  const std::size_t most = most_tokens(service, fields);
  Tokenizer::Texts texts;
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&input)) {
    texts.ids = *ids;
  } else if (fields.add_special_tokens) {
    TRY(texts, service.tokenizer.encode_texts(std::get<std::string>(input), std::nullopt, most));
  } else {
    TRY(texts.ids, service.tokenizer.encode(std::get<std::string>(input), false));
  }
  texts.ids.resize(std::min(texts.ids.size(), most));
  TRY_VOID(check_length(service, texts.ids.size(), "input"));
  return texts;
}

// What is common to all routes once the texts are known.
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
                       .priority = fields.priority,
                       .unknown_fields = std::move(fields.unknown_fields)},
              .frame = {}};
  begun.frame = {.id = begun.plan.request_id,
                 .model = service.options.rules.model_names.front(),
                 .tokens = begun.plan.tokens()};
  return begun;
}

// ---- One answer for each text.

using Writer = std::string (*)(const Service&, const openai::EmbeddingRequest&, std::size_t index,
                               const std::vector<float>& vector);

Result<PoolingPlan> for_each_text(const Service& service, const boost::json::object& body,
                                  std::string_view id, std::string_view prefix, Writer write) {
  TRY(openai::EmbeddingRequest request, openai::parse_embedding_request(body, service.options.rules));
  const int size = service.engine_info.pooled_size;
  if (request.dimensions && *request.dimensions > size)
    return invalid("dimensions", "must be at most {}, got {}", size, *request.dimensions);
  std::vector<Tokenizer::Texts> texts;
  for (const openai::TextOrTokens& input : request.input) {
    TRY(texts.emplace_back(), tokens_of(service, input, request.fields));
  }
  request.input.clear();
  Begun begun = begin_plan(service, request.fields, id, prefix, std::move(texts));
  begun.plan.reply = [&service, request = std::move(request), frame = std::move(begun.frame),
                      write](Vectors&& vectors) {
    return frame(joined(vectors.size(), [&](std::size_t i) {
      std::vector<float>& vector = vectors[i];
      if (request.dimensions) vector.resize(static_cast<std::size_t>(*request.dimensions));
      activate(service.engine_info, request.fields.activated, vector);
      return write(service, request, i, vector);
    }));
  };
  return std::move(begun.plan);
}

// ---- One score for each pair.

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

// A cross-encoder reads each pair; a model of vectors each text, and pairs are as alike as their vectors.
Result<PoolingPlan> score_pairs(const Service& service, openai::ScoreRequest request, std::string_view id,
                                std::string_view prefix, ScoreReply reply) {
  const EngineInfo& info = service.engine_info;
  if (info.task == Task::generate) return no_task(service, "score texts");
  const bool reads_pairs = info.task == Task::classify;
  if (reads_pairs && info.pooled_size != 1)
    return invalid("model", "scores of pairs need a model of one label, this one has {}", info.pooled_size);
  const std::size_t most = most_tokens(service, request.fields);
  std::vector<Tokenizer::Texts> texts;
  const auto add = [&](std::string_view first, std::optional<std::string_view> second) -> Result<> {
    TRY(texts.emplace_back(), service.tokenizer.encode_texts(first, second, most));
    return check_length(service, texts.back().ids.size(), "documents");
  };
  const std::size_t queries = request.queries.size(), documents = request.documents.size();
  for (std::size_t i = 0; reads_pairs && i < documents; ++i)
    TRY_VOID(add(request.queries[queries == 1 ? 0 : i], request.documents[i]));
  for (const auto* list : {&request.queries, &request.documents})
    for (const std::string& text : *list)
      if (!reads_pairs) TRY_VOID(add(text, std::nullopt));
  const bool activated = request.fields.activated;
  Begun begun = begin_plan(service, std::move(request.fields), id, prefix, std::move(texts));
  begun.plan.reply = [&service, frame = std::move(begun.frame), reply = std::move(reply), queries, documents,
                      activated](Vectors&& vectors) {
    std::vector<float> scores;
    if (service.engine_info.task == Task::classify) {
      for (std::vector<float>& vector : vectors) {
        activate(service.engine_info, activated, vector);
        scores.push_back(vector[0]);
      }
    } else {
      for (std::size_t i = 0; i < documents; ++i)
        scores.push_back(cosine(vectors[queries == 1 ? 0 : i], vectors[queries + i]));
    }
    return reply(frame, scores);
  };
  return std::move(begun.plan);
}

using Body = boost::json::object;

Result<PoolingPlan> plan_embeddings(const Service& service, const Body& body, std::string_view id) {
  if (service.engine_info.task != Task::embed) return no_task(service, "make vectors of texts");
  return for_each_text(service, body, id, "embd-",
                       [](const Service&, const openai::EmbeddingRequest& request, std::size_t i,
                          const std::vector<float>& vector) {
                         return fmt::format(R"({{"index":{},"object":"embedding","embedding":{}}})", i,
                                            request.base64 ? base64(vector) : numbers(vector));
                       });
}

Result<PoolingPlan> plan_vectors(const Service& service, const Body& body, std::string_view id) {
  if (service.engine_info.task == Task::generate) return no_task(service, "make vectors of texts");
  return for_each_text(service, body, id, "pool-",
                       [](const Service&, const openai::EmbeddingRequest& request, std::size_t i,
                          const std::vector<float>& vector) {
                         return fmt::format(R"({{"index":{},"object":"pooling","data":{}}})", i,
                                            request.base64 ? base64(vector) : numbers(vector));
                       });
}

Result<PoolingPlan> plan_classes(const Service& service, const Body& body, std::string_view id) {
  if (service.engine_info.task != Task::classify) return no_task(service, "classify texts");
  return for_each_text(
      service, body, id, "classify-",
      [](const Service& s, const openai::EmbeddingRequest&, std::size_t i, const std::vector<float>& scores) {
        const auto best = std::ranges::max_element(scores) - scores.begin();
        return fmt::format(R"({{"index":{},"label":{},"probs":{},"num_classes":{}}})", i,
                           json_text(s.engine_info.labels[static_cast<std::size_t>(best)]), numbers(scores),
                           scores.size());
      });
}

Result<PoolingPlan> plan_scores(const Service& service, const Body& body, std::string_view id) {
  TRY(openai::ScoreRequest request, openai::parse_score_request(body, service.options.rules));
  return score_pairs(service, std::move(request), id, "score-",
                     [](const Frame& frame, const std::vector<float>& scores) {
                       return frame(joined(scores.size(), [&](std::size_t i) {
                         return fmt::format(R"({{"index":{},"object":"score","score":{}}})", i, scores[i]);
                       }));
                     });
}

Result<PoolingPlan> plan_ranks(const Service& service, const Body& body, std::string_view id) {
  TRY(openai::RerankRequest request, openai::parse_rerank_request(body, service.options.rules));
  openai::ScoreRequest pairs{
      .fields = request.fields, .queries = {request.query}, .documents = request.documents};
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

std::optional<PoolingRoute> pooling_route(std::string_view path) {
  if (path.starts_with("/v1/") || path.starts_with("/v2/")) path.remove_prefix(3);
  if (path == "/embeddings") return PoolingRoute::embeddings;
  if (path == "/pooling") return PoolingRoute::pooling;
  if (path == "/classify") return PoolingRoute::classify;
  if (path == "/score") return PoolingRoute::score;
  if (path == "/rerank") return PoolingRoute::rerank;
  return std::nullopt;
}

Result<PoolingPlan> plan_pooling(const Service& service, PoolingRoute route, const boost::json::object& body,
                                 std::string_view id) {
  switch (route) {
    case PoolingRoute::embeddings:
      return plan_embeddings(service, body, id);
    case PoolingRoute::pooling:
      return plan_vectors(service, body, id);
    case PoolingRoute::classify:
      return plan_classes(service, body, id);
    case PoolingRoute::score:
      return plan_scores(service, body, id);
    case PoolingRoute::rerank:
      break;
  }
  return plan_ranks(service, body, id);
}

}  // namespace octavo
