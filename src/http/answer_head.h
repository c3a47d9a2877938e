// The head of a response in bytes. Private to this room.
#pragma once

#include <optional>
#include <string>

#include "http/message.h"
#include "http/server.h"

namespace octavo::http {

// How the client wants its answer.
struct AnswerForm {
  bool keep_alive = false;
  bool head_only = false;  // HEAD: no body
  bool chunks = true;      // HTTP/1.1
  std::string origin;      // the Origin header, when CORS is on
};

// Status line and header fields up to the empty line. A field with a line break in it is left out.
// body_bytes: nullopt for a stream.
std::string answer_head(const Response& response, std::optional<std::size_t> body_bytes,
                        const AnswerForm& form, const std::optional<CorsOptions>& cors);

// The answer to a preflight, nullopt when the request is none.
std::optional<Response> preflight_answer(const Request& request, const CorsOptions& cors);

}  // namespace octavo::http
