#include "serve/openai/errors.h"
#include "serve/routes/routes.h"

namespace octavo {

namespace {

// Anthropic's clients send their key in a field of its own.
bool shows_key(const ApiKeys& keys, const http::Request& request) {
  if (const auto bearer = request.headers.find("Authorization")) return keys.allows(*bearer);
  const auto key = request.headers.find("X-Api-Key");
  return key && keys.allows("Bearer " + std::string(*key));
}

}  // namespace

std::optional<http::Response> unauthorized(const ApiKeys& keys, const http::Request& request) {
  if (keys.open() || shows_key(keys, request)) return std::nullopt;
  return openai::error_response(401, "a valid API key is needed: Authorization: Bearer KEY");
}

}  // namespace octavo
