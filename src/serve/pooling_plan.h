// Converts a pooling request to texts for the engine, and the engine's results to a reply with
// vectors, scores of labels, or ranks.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "openai/errors.h"
#include "request/media_part.h"
#include "request/request.h"
#include "serve/generation_plan.h"
#include "serve/openai/pooling_request.h"
#include "serve/service.h"

namespace octavo {

using Vectors = std::vector<std::vector<float>>;

struct PoolingPlan {
  std::string request_id;
  std::vector<Tokenizer::Texts> texts;            // token ids; each text fits the model
  // media[i]: images and videos in texts[i]; shorter than `texts` if the last texts have none
  std::vector<std::vector<MediaPart>> media{};
  std::function<http::Response(Vectors&&)> reply{};  // makes the reply from the engine's results
  Task task = Task::embed;
  std::string adapter{};  // name of the LoRA adapter; "": no adapter
  std::int64_t priority = 0;
  std::vector<std::string> unknown_fields{};  // fields of the body that have no effect
  std::string client{};
  RequestAccount account{};
  http::Response (*error_response)(const Error&) = openai::error_response;

  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const Tokenizer::Texts& text : texts) sum += std::ssize(text.ids);
    return sum;
  }
  // Returns the engine's request for one text, whose tokens and media leave the plan.
  Request take_request(std::size_t text);
  std::int64_t vectors() const { return is_of_tokens(task) ? tokens() : std::ssize(texts); }
};

enum class PoolingRoute : std::uint8_t { embeddings, embed_by_type, pooling, classify, score, rerank };

// Returns the pooling route of a path such as "/v1/embeddings", "/v2/embed" or "/pooling", or nullopt.
std::optional<PoolingRoute> pooling_route(std::string_view path);

// Function that writes the reply of another protocol. data: the vectors as JSON lists, joined by commas.
using VectorsReply = std::string (*)(std::string_view model, std::int64_t tokens, std::string_view data);

// Returns the error of plan_embeddings() for a model that makes no vectors.
Result<> check_embeddings(const Service& service, VectorsReply whole = nullptr);
// Makes the plan for /v1/embeddings. whole: writes the reply; null: the reply has OpenAI's format.
Result<PoolingPlan> plan_embeddings(const Service& service, openai::EmbeddingRequest request,
                                    std::string_view id, VectorsReply whole = nullptr);

Result<openai::PoolingRequest> parse_pooling(PoolingRoute route, const boost::json::object& body,
                                             const openai::RequestRules& rules);
// Makes the plan for a request of this route. The service must outlive the plan. id: request id if the
// request has none; "": a random id. Returns an error for invalid fields, and an error with field "model" if
// the model does not support the route's task.
Result<PoolingPlan> plan_pooling(const Service& service, PoolingRoute route, openai::PoolingRequest request,
                                 std::string_view id = {});

}  // namespace octavo
