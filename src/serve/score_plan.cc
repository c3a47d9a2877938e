#include "serve/score_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "base/exact_json.h"
#include "serve/pooling_parts.h"
#include "serve/pooling_texts.h"
#include "serve/prompt_media.h"
#include "serve/vector_text.h"

namespace octavo {
namespace {

using ScoreReply = std::function<std::string(const PoolingFrame&, const std::vector<float>& scores)>;

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

using Media = openai::ChatPrompt::Media;

// A query or a document: its media, and its text after their placeholders.
struct MarkedText {
  std::string_view field;
  std::string text;
  std::span<const Media> media;
};

// most: maximum number of tokens of a text; 0: no limit. media: the media of these inputs and of later ones;
// the function removes those of these inputs.
Result<std::vector<MarkedText>> marked_texts(const Service& service,
                                             std::span<const openai::ScoreInput> inputs, int most,
                                             std::span<const Media>& media) {
  std::vector<MarkedText> texts;
  for (const openai::ScoreInput& input : inputs) {
    MarkedText& marked =
        texts.emplace_back(MarkedText{.field = input.field, .text = {}, .media = media.first(input.media)});
    media = media.subspan(input.media);
    for (const Media& one : marked.media) marked.text += token_of(service, one.kind);
    TRY(const std::string text, shortened(service, input.text, most));
    marked.text += text;
  }
  return texts;
}

// Decodes the media, and replaces their placeholders in `text` by their tokens.
Result<> add_media(const Service& service, std::span<const Media> media, std::string& text,
                   std::vector<MediaPart>& parts) {
  openai::ChatPrompt prompt;
  prompt.media.assign(media.begin(), media.end());
  TRY(std::vector<MediaPart> more, read_media(service, prompt, text));
  std::ranges::move(more, std::back_inserter(parts));
  return {};
}

// Renders a pair with the chat template, as a conversation of "query" and "document" as in vLLM.
Result<std::string> pair_in_template(const Service& service, const MarkedText& query,
                                     const MarkedText& document, const std::string& kwargs,
                                     std::vector<MediaPart>& parts) {
  const std::string messages =
      fmt::format(R"([{{"role":"query","content":{}}},{{"role":"document","content":{}}}])",
                  json_text(query.text), json_text(document.text));
  TRY(std::string text, service.templates.plain->render(
                            {.messages = messages, .kwargs = kwargs, .add_generation_prompt = false}));
  std::vector<Media> media(query.media.begin(), query.media.end());
  media.insert(media.end(), document.media.begin(), document.media.end());
  TRY_VOID(add_media(service, media, text, parts));
  return text;
}

// Tokenises a pair or, if `second` is null, one text.
Result<Tokenizer::Texts> tokens_of_pair(const Service& service, MarkedText first, const MarkedText* second,
                                        const std::string& template_kwargs, std::size_t most,
                                        std::vector<MediaPart>& parts) {
  Tokenizer::Texts texts;
  const std::size_t before = first.media.size();
  for (std::size_t i = 0; second != nullptr && i < second->media.size(); ++i)
    TRY_VOID(openai::check_media(second->media[i].field, service.options.rules,
                                 static_cast<std::ptrdiff_t>(before + i), second->media[i].kind));
  if (second != nullptr && service.options.pooling.score_template) {
    TRY(const std::string text, pair_in_template(service, first, *second, template_kwargs, parts));
    TRY(texts.ids, service.tokenizer.encode(text, true));
  } else {
    std::optional<std::string> other;
    TRY_VOID(add_media(service, first.media, first.text, parts));
    if (second != nullptr) {
      other = second->text;
      TRY_VOID(add_media(service, second->media, *other, parts));
    }
    TRY(texts, service.tokenizer.encode_texts(first.text, other, parts.empty() ? most : kEncodeBytesMax));
  }
  if (parts.empty())
    texts.ids.resize(std::min(texts.ids.size(), most));
  else
    TRY_VOID(check_length(texts.ids.size(), most, "truncate_prompt_tokens"));
  TRY_VOID(place_media(service, texts.ids, parts));
  return texts;
}

// Returns the scores of pairs from the engine's results.
std::vector<float> scores_of(const Service& service, bool wanted, std::size_t queries, std::size_t documents,
                             Vectors&& vectors) {
  std::vector<float> scores;
  const Task task = vectors_task(service);
  if (task == Task::classify) {
    for (std::vector<float>& vector : vectors) {
      activate_vector(service, task, wanted, vector);
      scores.push_back(vector[0]);
    }
    return scores;
  }
  const auto size = static_cast<std::size_t>(vector_size(service, task));
  const bool of_tokens = task == Task::token_embed;
  for (std::vector<float>& vector : vectors)
    if (of_tokens) activate_each(service, task, wanted, size, vector);
  for (std::size_t i = 0; i < documents; ++i) {
    const std::vector<float>&query = vectors[queries == 1 ? 0 : i], &document = vectors[queries + i];
    scores.push_back(of_tokens ? late_interaction(query, document, size) : cosine(query, document));
  }
  return scores;
}

// A cross-encoder reads a pair of texts and returns the score. An embedding model reads single texts, and the
// score is the similarity of their vectors.
Result<PoolingPlan> score_pairs(const Service& service, openai::ScoreRequest request, std::string_view id,
                                std::string_view prefix, ScoreReply reply) {
  const EngineInfo& info = service.engine_info;
  const Task task = vectors_task(service);
  if (task == Task::generate || task == Task::token_classify) return no_pooling(service, "score texts");
  const bool reads_pairs = task == Task::classify;
  // vLLM does not have the route for such a model.
  if (reads_pairs && info.tasks.pooled_size != 1)
    return field_failure("model", ErrorCode::not_found,
                         "scores of text pairs need a model with one label, but this model has {}",
                         info.tasks.pooled_size);
  const auto longest = static_cast<std::size_t>(info.max_model_len);
  TRY(const std::size_t most, most_tokens(request.fields, longest));
  const openai::PairOptions& pairs = request.pairs;
  if (!pairs.template_kwargs.empty() && !(reads_pairs && service.options.pooling.score_template))
    request.fields.unknown_fields.emplace_back("chat_template_kwargs");
  std::span<const Media> media = request.media;
  TRY(const auto queries, marked_texts(service, request.queries, pairs.tokens_per_query, media));
  TRY(const auto documents, marked_texts(service, request.documents, pairs.tokens_per_document, media));
  std::vector<Tokenizer::Texts> texts;
  std::vector<std::vector<MediaPart>> parts;
  const auto add = [&](const MarkedText& first, const MarkedText* second) -> Result<> {
    TRY(texts.emplace_back(),
        tokens_of_pair(service, first, second, pairs.template_kwargs, most, parts.emplace_back()));
    return check_length(texts.back().ids.size(), longest, (second != nullptr ? *second : first).field);
  };
  for (std::size_t i = 0; reads_pairs && i < documents.size(); ++i)
    TRY_VOID(add(queries[queries.size() == 1 ? 0 : i], &documents[i]));
  for (const auto* list : {&queries, &documents})
    for (const MarkedText& text : *list)
      if (!reads_pairs) TRY_VOID(add(text, nullptr));
  const bool wanted = is_activated(service, request.fields);
  std::vector<std::vector<TokenId>> tokens;  // of each text, for choose()
  for (const Tokenizer::Texts& text : texts)
    if (task == Task::token_embed) tokens.push_back(text.ids);
  BegunPooling begun = begin_pooling(service, std::move(request.fields), id, prefix, std::move(texts));
  begun.plan.task = task;
  begun.plan.media = std::move(parts);
  begun.plan.reply = [&service, frame = std::move(begun.frame), reply = std::move(reply), wanted, task,
                      tokens = std::move(tokens),
                      counts = std::pair(queries.size(), documents.size())](Vectors&& vectors) {
    for (std::size_t i = 0; i < tokens.size(); ++i) choose(service, task, tokens[i], vectors[i]);
    return http::Response{
        .body = reply(frame, scores_of(service, wanted, counts.first, counts.second, std::move(vectors)))};
  };
  return std::move(begun.plan);
}

// Returns the JSON of a document in a reply of /rerank.
std::string document_json(const openai::ScoreInput& document) {
  if (document.content.is_null()) return fmt::format(R"({{"text":{}}})", json_text(document.text));
  return fmt::format(R"({{"multi_modal":{}}})", exact_json_text(document.content));
}

}  // namespace

Result<PoolingPlan> plan_scores(const Service& service, openai::ScoreRequest request, std::string_view id) {
  return score_pairs(service, std::move(request), id, "score-",
                     [](const PoolingFrame& frame, const std::vector<float>& scores) {
                       return frame(joined(scores.size(), [&](std::size_t i) {
                         return fmt::format(R"({{"index":{},"object":"score","score":{}}})", i, scores[i]);
                       }));
                     });
}

Result<PoolingPlan> plan_ranks(const Service& service, openai::RerankRequest request, std::string_view id) {
  std::vector<std::string> shown;  // empty: the reply has no documents
  for (const openai::ScoreInput& document : request.scored.documents)
    if (request.return_documents) shown.push_back(document_json(document));
  return score_pairs(
      service, std::move(request.scored), id, "rerank-",
      [top_n = request.top_n.value_or(0), shown = std::move(shown)](const PoolingFrame& frame,
                                                                    const std::vector<float>& scores) {
        std::vector<std::size_t> order(scores.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
        if (top_n > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(top_n)));
        const std::string results = joined(order.size(), [&](std::size_t place) {
          const std::size_t i = order[place];
          const std::string document = shown.empty() ? "" : fmt::format(R"("document":{},)", shown[i]);
          return fmt::format(R"({{"index":{},{}"relevance_score":{}}})", i, document, scores[i]);
        });
        return fmt::format(
            R"({{"id":{},"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}},"results":[{}]}})",
            json_text(frame.id), json_text(frame.model), frame.tokens, frame.tokens, results);
      });
}

}  // namespace octavo
