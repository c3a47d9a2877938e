// Rules for all messages that a proxy forwards: headers, limits, streams.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/message.h"

namespace octavo::fleet {

inline constexpr std::size_t kGatheredBytesMax =
    64 << 20;  // maximum size of a buffered response; larger responses are streamed
inline constexpr std::size_t kUnsentBytesMax =
    // maximum number of unsent bytes to a client; above it, the proxy stops reading from the replica
    256 << 10;

// Returns the headers to forward. Omits those of one connection (RFC 9110, 7.6.1, and those that Connection
// names), and those that the proxy writes.
http::Headers passed_on(const http::Headers& headers);

// Returns the headers of an answer to forward. A Location at the engine becomes a path at the proxy, since
// clients may not reach the engine.
http::Headers passed_back(const http::Headers& headers, std::string_view engine_url);

// Returns the request target, as the client has sent it.
std::string target_of(const http::Request& request);

bool asks_for_websocket(const http::Request& request);

bool is_event_stream(const http::Response& answer);
// Returns whether the proxy must forward the response at once: events, lines of JSON, audio of unknown
// length.
bool is_stream(const http::Response& answer);

}  // namespace octavo::fleet
