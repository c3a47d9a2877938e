// Converts a pooling body to the engine's texts, and the engine's vectors to a reply with vectors, scores of
// labels, or ranks. Independent of HTTP.
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
#include "serve/generation_plan.h"
#include "serve/service.h"

namespace octavo {

using Vectors = std::vector<std::vector<float>>;

struct PoolingPlan {
  std::string request_id;
  std::vector<Tokenizer::Texts> texts;            // checked: each text fits the model
  std::function<std::string(Vectors&&)> reply{};  // makes the reply's body from the model's vectors
  Task task = Task::embed;                        // the same task for all texts
  std::string adapter{};                          // name of the LoRA adapter; "": none
  std::int64_t priority = 0;
  std::vector<std::string> unknown_fields{};  // fields of the body that have no effect
  std::string client{};                       // tenant
  RequestAccount account{};
  http::Response (*error_response)(const Error&) = openai::error_response;

  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const Tokenizer::Texts& text : texts) sum += std::ssize(text.ids);
    return sum;
  }
  // Number of vectors that the model returns.
  std::int64_t vectors() const { return is_of_tokens(task) ? tokens() : std::ssize(texts); }
};

enum class PoolingRoute : std::uint8_t { embeddings, embed_by_type, pooling, classify, score, rerank };

// The pooling route of a path: "/v1/embeddings", "/v2/embed", "/pooling", "/classify", "/score" or "/rerank",
// each with or without /v1. nullopt: another path.
std::optional<PoolingRoute> pooling_route(std::string_view path);

// Writes the reply of another protocol. data: the vectors as JSON lists, joined by commas.
using VectorsReply = std::string (*)(std::string_view model, std::int64_t tokens, std::string_view data);

// As plan_pooling for /v1/embeddings. whole: null for OpenAI's reply.
Result<PoolingPlan> plan_embeddings(const Service& service, const boost::json::object& body,
                                    std::string_view id, VectorsReply whole = nullptr);

// Makes the plan for the body of a pooling route. The service must outlive it. id: used if the body has no
// request id; "": random. Errors: invalid fields; field "model" if the model has another task.
Result<PoolingPlan> plan_pooling(const Service& service, PoolingRoute route, const boost::json::object& body,
                                 std::string_view id = {});

}  // namespace octavo
