#include "fleet/relay/proxy_error.h"

#include "fleet/relay/json_body.h"
#include "openai/anthropic_errors.h"
#include "openai/errors.h"
#include "openai/routes.h"

namespace octavo::fleet {
namespace {

bool is_anthropic(std::string_view path) {
  const openai::Route* route = openai::find_route(path);
  return route != nullptr && route->protocol == openai::Protocol::anthropic;
}

}  // namespace

http::Response proxy_error(std::string_view path, int status, std::string_view message,
                           std::string_view param) {
  http::Response response = openai::error_response(status, message, param);
  if (is_anthropic(path)) response.body = anthropic::error_json(status, message);
  return response;
}

http::Response proxy_error(std::string_view path, const Error& error) {
  return is_anthropic(path) ? anthropic::error_response(error) : openai::error_response(error);
}

std::string proxy_error_event(std::string_view path, int status, std::string_view message,
                              std::string_view param) {
  if (is_anthropic(path)) return "event: error\ndata: " + anthropic::error_json(status, message) + "\n\n";
  const std::string error = openai::error_json(status, message, param);
  // Clients of responses read the type of each event.
  if (path == "/v1/responses")
    return "event: error\ndata: " + with_field(error, "type", "\"error\"") + "\n\n";
  return "data: " + error + "\n\n";
}

}  // namespace octavo::fleet
