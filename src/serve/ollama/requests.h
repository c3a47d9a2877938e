// Converts the bodies of Ollama's /api/chat, /api/generate and /api/embed to the bodies of OpenAI's routes.
// Source: docs/api.md in Ollama's repository.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/completion_request.h"

namespace octavo::ollama {

// A body without a prompt: in Ollama it loads the model, or unloads it if `keep_alive` is 0. The server
// answers both at once, because it keeps its model until it stops.
struct Hold {
  std::string model;  // the name that the client used
  bool load = true;
};

using Request = std::variant<openai::ChatRequest, openai::CompletionRequest, Hold>;

// The served name that the client means with `model`. Ollama's clients add ":latest" to names.
std::string served_name(std::string_view model, const openai::RequestRules& rules);

// Errors name Ollama's fields ("options.num_predict").
Result<Request> parse_chat(const boost::json::object& body, const openai::RequestRules& rules);
// has_template: the model has a chat template. Without a template, or with `raw` or `suffix`, the prompt is
// not rendered.
Result<Request> parse_generate(const boost::json::object& body, const openai::RequestRules& rules,
                               bool has_template);
// Makes the body of /v1/embeddings from the body of /api/embed (`input`) or of the older /api/embeddings
// (`prompt`).
Result<boost::json::object> embedding_body(const boost::json::object& body,
                                           const openai::RequestRules& rules);

}  // namespace octavo::ollama
