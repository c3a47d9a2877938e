// Converts the bodies of Ollama's /api/chat, /api/generate and /api/embed to those of OpenAI's routes.
// Ollama's API: docs/api.md of its repository.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/completion_request.h"

namespace octavo::ollama {

// A body without a prompt loads the model, or unloads it (`keep_alive` 0): both are answered at once, since
// the server holds its model until it stops.
struct Hold {
  std::string model;  // as the client names it
  bool load = true;
};

using Request = std::variant<openai::ChatRequest, openai::CompletionRequest, Hold>;

// A request's model: the served name that the client means. Ollama's clients add ":latest" to names.
std::string served_name(std::string_view model, const openai::RequestRules& rules);

// Errors name Ollama's fields ("options.num_predict").
Result<Request> parse_chat(const boost::json::object& body, const openai::RequestRules& rules);
// has_template: the model has a chat template. Without it, or with `raw` or `suffix`, the prompt is taken as
// it is.
Result<Request> parse_generate(const boost::json::object& body, const openai::RequestRules& rules,
                               bool has_template);
// The body of /v1/embeddings for one of /api/embed (`input`) or of the older /api/embeddings (`prompt`).
Result<boost::json::object> embedding_body(const boost::json::object& body,
                                           const openai::RequestRules& rules);

}  // namespace octavo::ollama
