// Serializes the header of an HTTP response. Only this module uses it.
#pragma once

#include <optional>
#include <string>

#include "http/message.h"
#include "http/server.h"

namespace octavo::http {

// How to send a response, depending on the request.
struct AnswerForm {
  bool keep_alive = false;
  // whether the request is HEAD, so that the body is not sent
  bool head_only = false;
  // whether a stream uses chunked coding, which only HTTP/1.1 clients understand
  bool chunks = true;
  std::string origin;  // Origin header of the request, if CORS is on
};

// Returns the status line and header fields, including the empty line. Fields with a line break are left
// out. body_bytes: nullopt for a stream.
std::string answer_head(const Response& response, std::optional<std::size_t> body_bytes,
                        const AnswerForm& form, const std::optional<CorsOptions>& cors);

// Returns the response to a CORS preflight request, or nullopt for other requests.
std::optional<Response> preflight_answer(const Request& request, const CorsOptions& cors);

}  // namespace octavo::http
