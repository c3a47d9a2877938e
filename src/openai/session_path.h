// Paths of the routes of sessions: /v1/sessions/ID and /v1/sessions/ID/ACTION.
#pragma once

#include <string>
#include <string_view>

namespace octavo::openai {

inline constexpr std::string_view kSessionsPath = "/v1/sessions";

// The id may contain slashes.
struct SessionPath {
  std::string_view id;      // "": the path is /v1/sessions
  std::string_view action;  // "": none
};

// `path` is the decoded path of a request, and may begin with a gateway's prefix.
SessionPath parse_session_path(std::string_view path);

// Encodes all bytes of an id except letters, digits, '-', '.' and '_', for a segment of a path or a query.
std::string encoded_session_id(std::string_view id);

}  // namespace octavo::openai
