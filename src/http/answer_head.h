// Serialises a response's header. Private to this module.
#pragma once

#include <optional>
#include <string>

#include "http/message.h"
#include "http/server.h"

namespace octavo::http {

// Properties of the response that the request determines.
struct AnswerForm {
  bool keep_alive = false;
  bool head_only = false;  // whether the request is HEAD, so that the response has no body
  bool chunks = true;      // whether to use chunked coding, for HTTP/1.1 clients
  std::string origin;      // the request's Origin header, if CORS is on
};

// Returns the status line and the header fields up to the empty line, without fields that contain a line
// break. body_bytes: nullopt for a stream.
std::string answer_head(const Response& response, std::optional<std::size_t> body_bytes,
                        const AnswerForm& form, const std::optional<CorsOptions>& cors);

// Returns the response to a CORS preflight, or nullopt if the request is not a preflight.
std::optional<Response> preflight_answer(const Request& request, const CorsOptions& cors);

}  // namespace octavo::http
