// Bodies for models that read texts, as what the engine must read and how the reply is made of its vectors:
// vectors, scores of labels, and what can be made of both. No HTTP.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/service.h"

namespace octavo {

using Vectors = std::vector<std::vector<float>>;

struct PoolingPlan {
  std::string request_id;
  std::vector<Tokenizer::Texts> texts;            // checked: the model reads that many tokens
  std::function<std::string(Vectors&&)> reply{};  // the body, from what the model gives for each text
  Task task = Task::embed;                        // of each text
  std::string adapter{};                          // that reads them; empty: the model itself
  std::int64_t priority = 0;
  std::vector<std::string> unknown_fields{};  // of the body; they have no effect
  std::string client{};                       // whose share of the server it takes

  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const Tokenizer::Texts& text : texts) sum += std::ssize(text.ids);
    return sum;
  }
  // That the model gives for all texts: of `size` numbers each.
  std::int64_t vectors() const { return is_of_tokens(task) ? tokens() : std::ssize(texts); }
};

enum class PoolingRoute : std::uint8_t { embeddings, embed_by_type, pooling, classify, score, rerank };

// Of "/v1/embeddings", "/v2/embed", "/pooling", "/classify", "/score", "/rerank", with or without /v1;
// nullopt: none of them.
std::optional<PoolingRoute> pooling_route(std::string_view path);

// The plan for a body of one of these routes. The service outlives it. id: names the request where the body
// does not;
// "": a random one. Errors: the body's fields; field "model" where the model does something else.
Result<PoolingPlan> plan_pooling(const Service& service, PoolingRoute route, const boost::json::object& body,
                                 std::string_view id = {});

}  // namespace octavo
