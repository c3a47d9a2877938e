#include "fleet/relay/proxy_error.h"

#include "fleet/relay/json_body.h"
#include "openai/errors.h"
#include "openai/protocol_errors.h"
#include "openai/routes.h"

namespace octavo::fleet {
http::Response proxy_error(std::string_view path, int status, std::string_view message,
                           std::string_view param) {
  http::Response response = openai::error_response(status, message, param);
  response.body = openai::error_json_in(openai::protocol_of(path), status, message, param);
  return response;
}

http::Response proxy_error(std::string_view path, const Error& error) {
  return openai::error_response_in(openai::protocol_of(path), error);
}

std::string proxy_error_event(std::string_view path, int status, std::string_view message,
                              std::string_view param) {
  const openai::Protocol protocol = openai::protocol_of(path);
  const std::string error = openai::error_json_in(protocol, status, message, param);
  if (protocol == openai::Protocol::ollama) return error + "\n";
  if (protocol == openai::Protocol::anthropic) return "event: error\ndata: " + error + "\n\n";
  // Clients of the Responses API need the field `type` in each event.
  if (path == "/v1/responses")
    return "event: error\ndata: " + with_field(error, "type", "\"error\"") + "\n\n";
  return "data: " + error + "\n\n";
}

}  // namespace octavo::fleet
