// Rules for all messages that a proxy forwards: header fields, limits, streams.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/message.h"

namespace octavo::fleet {

inline constexpr std::size_t kGatheredBytesMax =
    64 << 20;  // maximum size of a buffered response; larger ones are streamed
inline constexpr std::size_t kUnsentBytesMax =
    256 << 10;  // limit of unsent bytes to the client; beyond it, the proxy reads no more from the replica

// The message's headers, without those of a single connection (RFC 9110, 7.6.1, including those that
// Connection names) and without those that the proxy writes itself.
http::Headers passed_on(const http::Headers& headers);

// As above, for an answer. A Location at the engine becomes a path at the proxy, since clients may not reach
// the engine.
http::Headers passed_back(const http::Headers& headers, std::string_view engine_url);

// The request target as the client sent it.
std::string target_of(const http::Request& request);

bool asks_for_websocket(const http::Request& request);

bool is_event_stream(const http::Response& answer);
// Whether the response is a stream that the client needs at once: events, lines of JSON, audio of unknown
// length.
bool is_stream(const http::Response& answer);

}  // namespace octavo::fleet
