// The routes of inference APIs: one table for servers, routers, pickers and sidecars.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace octavo::openai {

// Whose errors and fields a route has.
enum class Protocol : std::uint8_t { openai, anthropic, vllm, sglang };

// Where a request names its model.
enum class ModelField : std::uint8_t { none, body, body_or_default, form, path };

struct Route {
  std::string_view path;              // one that ends in '/' matches all longer paths
  std::string_view methods = "POST";  // as in an Allow header
  Protocol protocol = Protocol::openai;
  ModelField model = ModelField::body;
  std::string_view limit = {};     // field that limits the output tokens; "": the route generates none
  std::string_view limit_in = {};  // object that has this field; "": the body
  bool chat = false;               // the prompt is a conversation, which a chat template renders
  bool renders = false;            // PATH/render returns the prompt's exact tokens
  bool resumable = false;          // another replica can continue a broken stream
  bool pooled = false;             // the answer is vectors or scores
  bool stored_id = false;          // what follows the path is the id of a stored response

  bool generates() const { return !limit.empty(); }
};

std::span<const Route> routes();

// The route of a path, which may have a prefix that a gateway has left in front; OpenAI's routes may lack
// "/v1" then. Null: none of the table.
const Route* find_route(std::string_view path);

}  // namespace octavo::openai
