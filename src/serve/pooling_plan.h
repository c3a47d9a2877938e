// Converts a pooling body to the engine's texts, and the engine's vectors to the reply: vectors, scores of
// labels, or ranks. No HTTP.
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
#include "serve/service.h"

namespace octavo {

using Vectors = std::vector<std::vector<float>>;

struct PoolingPlan {
  std::string request_id;
  std::vector<Tokenizer::Texts> texts;            // checked: they fit the model
  std::function<std::string(Vectors&&)> reply{};  // the body, from the model's vectors
  Task task = Task::embed;                        // of each text
  std::string adapter{};                          // name of the LoRA adapter, or empty
  std::int64_t priority = 0;
  std::vector<std::string> unknown_fields{};  // of the body; they have no effect
  std::string client{};                       // tenant
  http::Response (*error_response)(const Error&) = openai::error_response;

  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const Tokenizer::Texts& text : texts) sum += std::ssize(text.ids);
    return sum;
  }
  // Number of vectors from the model.
  std::int64_t vectors() const { return is_of_tokens(task) ? tokens() : std::ssize(texts); }
};

enum class PoolingRoute : std::uint8_t { embeddings, embed_by_type, pooling, classify, score, rerank };

// The route of "/v1/embeddings", "/v2/embed", "/pooling", "/classify", "/score", "/rerank", with or without
// /v1. nullopt: another path.
std::optional<PoolingRoute> pooling_route(std::string_view path);

// The plan for a body of one of these routes. The service must outlive it. id: request id if the body has
// none; "": random. Errors: the body's fields; field "model" if the model has another task.
Result<PoolingPlan> plan_pooling(const Service& service, PoolingRoute route, const boost::json::object& body,
                                 std::string_view id = {});

}  // namespace octavo
