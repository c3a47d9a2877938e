#include "openai/routes.h"

namespace octavo::openai {
namespace {

constexpr Route kRoutes[] = {
    {.path = "/v1/chat/completions", .limit = "max_tokens", .chat = true, .renders = true, .resumable = true},
    {.path = "/v1/completions", .limit = "max_tokens", .renders = true, .resumable = true},
    {.path = "/v1/chat/completions/render", .model = ModelField::body_or_default, .chat = true},
    {.path = "/v1/completions/render", .model = ModelField::body_or_default},
    {.path = "/v1/responses",
     .limit = "max_output_tokens",
     .chat = true,
     .resumable = true,
     .named_events = true,
     .creates = "resp"},
    {.path = "/v1/responses/compact", .chat = true},
    {.path = "/v1/responses/input_tokens", .chat = true},
    {.path = "/v1/responses/", .methods = "GET, POST, DELETE", .model = ModelField::none, .stored_id = true},
    {.path = "/v1/sessions", .methods = "GET", .model = ModelField::none},
    {.path = "/v1/sessions/",
     .methods = "GET, POST, DELETE",
     .model = ModelField::none,
     .stored_id = true,
     .session = true},
    {.path = "/v1/conversations", .model = ModelField::none, .creates = "conv"},
    {.path = "/v1/conversations/",
     .methods = "GET, POST, DELETE",
     .model = ModelField::none,
     .stored_id = true},
    {.path = "/v1/messages",
     .protocol = Protocol::anthropic,
     .limit = "max_tokens",
     .chat = true,
     .resumable = true,
     .named_events = true},
    {.path = "/v1/messages/count_tokens", .protocol = Protocol::anthropic, .chat = true},
    {.path = "/v1/messages/",
     .methods = "GET, POST, DELETE",
     .protocol = Protocol::anthropic,
     .model = ModelField::none},
    {.path = "/cohere/v2/chat", .protocol = Protocol::cohere, .limit = "max_tokens", .chat = true},
    {.path = "/cohere/v2/chat/render", .protocol = Protocol::cohere, .chat = true},
    {.path = "/inference/v1/generate",
     .protocol = Protocol::vllm,
     .limit = "max_tokens",
     .limit_in = "sampling_params"},
    {.path = "/generative_scoring", .model = ModelField::body_or_default},
    {.path = "/invocations", .model = ModelField::body_or_default, .limit = "max_tokens"},
    {.path = "/generate", .protocol = Protocol::sglang, .model = ModelField::none},
    {.path = "/api/chat",
     .protocol = Protocol::ollama,
     .limit = "num_predict",
     .limit_in = "options",
     .chat = true},
    {.path = "/api/generate", .protocol = Protocol::ollama, .limit = "num_predict", .limit_in = "options"},
    {.path = "/api/embed", .protocol = Protocol::ollama, .pooled = true},
    {.path = "/api/embeddings", .protocol = Protocol::ollama, .pooled = true},
    {.path = "/v1/embeddings", .pooled = true},
    {.path = "/v2/embed", .model = ModelField::body_or_default, .pooled = true},
    {.path = "/pooling", .pooled = true},
    {.path = "/classify", .pooled = true},
    {.path = "/score", .pooled = true},
    {.path = "/v1/score", .pooled = true},
    {.path = "/rerank", .pooled = true},
    {.path = "/v1/rerank", .pooled = true},
    {.path = "/v2/rerank", .pooled = true},
    {.path = "/v1/audio/transcriptions", .model = ModelField::form},
    {.path = "/v1/audio/translations", .model = ModelField::form},
    {.path = "/tokenize", .model = ModelField::body_or_default},
    {.path = "/detokenize", .model = ModelField::body_or_default},
    {.path = "/v1/models", .methods = "GET", .model = ModelField::none},
    {.path = "/v1/models/", .methods = "GET", .model = ModelField::path},
};

bool matches(const Route& route, std::string_view path) {
  if (route.path.ends_with('/')) return path.starts_with(route.path);
  constexpr std::string_view kVersion = "/v1";
  const bool versioned = route.protocol == Protocol::openai && route.path.starts_with(kVersion);
  return path.ends_with(versioned ? route.path.substr(kVersion.size()) : route.path);
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

const Route* find_route(std::string_view path) {
  for (const Route& route : kRoutes)
    if (route.path == path) return &route;
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const Route* found = nullptr;
  for (const Route& route : kRoutes) {
    if (route.path == path) return &route;
    if (matches(route, path) && (!found || route.path.size() > found->path.size())) found = &route;
  }
  return found;
}

Protocol protocol_of(std::string_view path) {
  if (const Route* known = find_route(path)) return known->protocol;
  return path.starts_with("/api/") ? Protocol::ollama : Protocol::openai;
}

}  // namespace octavo::openai
