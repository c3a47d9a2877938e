// Table of the inference routes. Servers, routers, endpoint pickers and sidecars all use this
// table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace octavo::openai {

// The API that defines the format of a route's requests and errors.
enum class Protocol : std::uint8_t { openai, anthropic, vllm, sglang, ollama };

// The part of a request that contains the model's name.
enum class ModelField : std::uint8_t { none, body, body_or_default, form, path };

struct Route {
  std::string_view path;              // a path that ends with '/' also matches longer paths
  std::string_view methods = "POST";  // as in an Allow header
  Protocol protocol = Protocol::openai;
  ModelField model = ModelField::body;
  // name of the field that limits output tokens; "": the route generates no text
  std::string_view limit = {};
  std::string_view limit_in = {};  // object that contains the field; "": the body itself
  bool chat = false;               // whether the prompt is a conversation for a chat template
  bool renders = false;            // whether PATH/render exists, which returns the token ids of the prompt
  bool resumable = false;          // whether another replica can continue a broken stream
  bool named_events = false;       // whether the stream's events have names
  bool pooled = false;
  bool stored_id = false;  // whether the path contains the id of a stored response, conversation or session
  bool session = false;    // whether this id is the name of a session
  std::string_view creates = {};  // prefix of the ids of objects that the route stores on the server

  bool generates() const { return !limit.empty(); }
};

std::span<const Route> routes();

// Returns the route of a path, or null. The path may begin with a gateway's prefix; the "/v1" of
// OpenAI's routes may then be missing.
const Route* find_route(std::string_view path);

// Returns the protocol of the path's route, which decides the format of errors.
Protocol protocol_of(std::string_view path);

}  // namespace octavo::openai
