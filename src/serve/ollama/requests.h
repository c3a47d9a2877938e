// Converts the bodies of Ollama's /api/chat, /api/generate and /api/embed to requests of OpenAI's routes.
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

// A request without a prompt. In Ollama it loads the model, or unloads the model if `keep_alive` is 0. A
// server with one model keeps it until it stops, so it only sends a reply.
struct Hold {
  std::string model;  // name of the model as the client wrote it
  bool load = true;
};

using Request = std::variant<openai::ChatRequest, openai::CompletionRequest, Hold>;

// Errors contain Ollama's field names, such as "options.num_predict".
Result<Request> parse_chat(const boost::json::object& body, const openai::RequestRules& rules);
// has_template: whether the model has a chat template. Without a template, or with the fields `raw` or
// `suffix`, the prompt is used unchanged.
Result<Request> parse_generate(const boost::json::object& body, const openai::RequestRules& rules,
                               bool has_template);
// Makes the body of /v1/embeddings from the body of /api/embed (with `input`) or of the older
// /api/embeddings (with `prompt`). It has no `input` if the body has no text: such a request loads a model.
Result<boost::json::object> embedding_body(const boost::json::object& body);

}  // namespace octavo::ollama
