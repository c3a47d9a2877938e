// Rules for the messages that the router and the sidecar forward: headers, limits and streams.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/message.h"

namespace octavo::fleet {

// maximum size of a buffered response; larger responses are streamed
inline constexpr std::size_t kGatheredBytesMax = 64 << 20;
// Maximum number of bytes that wait to be sent to a client. Above it, the proxy stops reading from the
// engine.
inline constexpr std::size_t kUnsentBytesMax = 256 << 10;

// Returns the headers to forward. Omits headers that concern one connection (RFC 9110, 7.6.1), headers that
// `Connection` names, and headers that the proxy writes itself.
http::Headers passed_on(const http::Headers& headers);

// Returns the response headers to forward. A Location at the engine becomes a path, because clients may not
// reach the engine.
http::Headers passed_back(const http::Headers& headers, std::string_view engine_url);

// Returns the path and query as the client has sent them.
std::string target_of(const http::Request& request);

bool requests_websocket(const http::Request& request);

bool is_event_stream(const http::Response& answer);
// Returns whether the response must be forwarded without buffering. This holds for event streams, lines of
// JSON, and audio of unknown length.
bool is_stream(const http::Response& answer);

}  // namespace octavo::fleet
