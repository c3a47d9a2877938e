// Routes of inference APIs: one table for servers, routers, pickers and sidecars.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace octavo::openai {

// The API that defines a route's errors and fields.
enum class Protocol : std::uint8_t { openai, anthropic, vllm, sglang, ollama };

// Where a request names its model.
enum class ModelField : std::uint8_t { none, body, body_or_default, form, path };

struct Route {
  std::string_view path;              // a path with '/' at its end matches all longer paths
  std::string_view methods = "POST";  // as in an Allow header
  Protocol protocol = Protocol::openai;
  ModelField model = ModelField::body;
  std::string_view limit = {};     // field with the limit on output tokens; "": the route generates none
  std::string_view limit_in = {};  // object with the limit field; "": the body
  bool chat = false;               // the prompt is a conversation for a chat template
  bool renders = false;            // PATH/render exists, and returns the prompt's exact tokens
  bool resumable = false;          // another replica can continue a broken stream
  bool named_events = false;       // the events of its streams have names
  bool pooled = false;             // the answer is vectors or scores
  bool stored_id = false;          // the path ends with the id of a stored response or conversation
  std::string_view creates = {};   // prefix of ids that the route creates and its server stores

  bool generates() const { return !limit.empty(); }
};

std::span<const Route> routes();

// Returns the route of a path; null if none exists. A gateway's prefix may precede the path; then OpenAI's
// routes may lack "/v1".
const Route* find_route(std::string_view path);

// Returns the protocol of this path, which decides the format of errors.
Protocol protocol_of(std::string_view path);

}  // namespace octavo::openai
