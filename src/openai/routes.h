// Table of the inference routes. Servers, routers, endpoint pickers and sidecars all use this
// table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace octavo::openai {

// The API whose format a route's requests and errors have.
enum class Protocol : std::uint8_t { openai, anthropic, vllm, sglang, ollama, cohere };

// The part of a request that contains the model's name.
enum class ModelField : std::uint8_t { none, body, body_or_default, form, path };

struct Route {
  std::string_view path;              // a path that ends with '/' also matches longer paths
  std::string_view methods = "POST";  // as in an Allow header
  Protocol protocol = Protocol::openai;
  ModelField model = ModelField::body;
  // name of the request field that limits output tokens; "": the request has none
  std::string_view limit = {};
  std::string_view limit_in = {};  // name of the object that contains the `limit` field; "": the body itself
  bool chat = false;               // whether the prompt is a conversation for a chat template
  bool renders = false;            // whether PATH/render exists, which returns the token ids of the prompt
  bool resumable = false;          // whether another replica can continue a broken stream
  bool named_events = false;       // whether a stream's events have an `event:` line
  bool pooled = false;
  bool stored_id = false;  // whether the path contains the id of a stored response, conversation or session
  bool session = false;    // whether this id is the name of a session
  std::string_view creates = {};  // prefix of the ids of objects that the route stores on the server

  bool generates() const { return !limit.empty(); }
};

std::span<const Route> routes();

// Returns the route of a path, or null. The path may begin with a gateway's prefix. In OpenAI's routes, "/v1"
// may be missing.
const Route* find_route(std::string_view path);

// Returns the protocol of the path's route, also for unknown paths. It decides the format of errors.
Protocol protocol_of(std::string_view path);

}  // namespace octavo::openai
