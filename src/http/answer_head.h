// Serialises a response's header. Private to this module.
#pragma once

#include <optional>
#include <string>

#include "http/message.h"
#include "http/server.h"

namespace octavo::http {

// Properties of the response that follow from the request.
struct AnswerForm {
  bool keep_alive = false;
  bool head_only = false;  // the request is HEAD, so the response has no body
  bool chunks = true;      // use chunked coding, which HTTP/1.1 clients understand
  std::string origin;      // the request's Origin header, if CORS is on
};

// Returns the status line and the header fields up to the empty line. Omits fields that contain a line
// break. body_bytes: nullopt for a stream.
std::string answer_head(const Response& response, std::optional<std::size_t> body_bytes,
                        const AnswerForm& form, const std::optional<CorsOptions>& cors);

// Returns the response to a CORS preflight, or nullopt for other requests.
std::optional<Response> preflight_answer(const Request& request, const CorsOptions& cors);

}  // namespace octavo::http
