// The routes of inference APIs: one table for servers, routers, pickers and sidecars.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace octavo::openai {

// The API that defines a route's errors and fields.
enum class Protocol : std::uint8_t { openai, anthropic, vllm, sglang, ollama };

// The part of a request that names its model.
enum class ModelField : std::uint8_t { none, body, body_or_default, form, path };

struct Route {
  std::string_view path;              // a path that ends in '/' matches all longer paths
  std::string_view methods = "POST";  // in the format of an Allow header
  Protocol protocol = Protocol::openai;
  ModelField model = ModelField::body;
  std::string_view limit = {};     // field that limits the output tokens; "": the route generates none
  std::string_view limit_in = {};  // object that contains the limit field; "": the body
  bool chat = false;               // the prompt is a conversation, which a chat template renders
  bool renders = false;            // PATH/render exists and returns the prompt's exact tokens
  bool resumable = false;          // another replica can continue an interrupted stream
  bool named_events = false;       // the events of its streams have names
  bool pooled = false;             // the answer is vectors or scores
  bool stored_id = false;          // the path continues with the id of a stored response or conversation
  std::string_view creates = {};   // prefix of the ids that the route creates and its server stores

  bool generates() const { return !limit.empty(); }
};

std::span<const Route> routes();

// The route of a path; null if the table has none. The path may begin with a gateway's prefix; then OpenAI's
// routes may lack "/v1".
const Route* find_route(std::string_view path);

// The protocol that a client of this path speaks: it decides the form of errors.
Protocol protocol_of(std::string_view path);

}  // namespace octavo::openai
