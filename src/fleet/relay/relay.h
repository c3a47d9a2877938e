// Rules for any message that a proxy forwards: header fields, limits, streams.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/message.h"

namespace octavo::fleet {

inline constexpr std::size_t kGatheredBytesMax =
    64 << 20;  // maximum size of a buffered response; larger ones are streamed
inline constexpr std::size_t kUnsentBytesMax =
    256 << 10;  // unsent bytes to the client above which the replica waits

// Headers of the message, without those of one connection (RFC 9110, 7.6.1: also those that Connection names)
// and without those that this side writes.
http::Headers passed_on(const http::Headers& headers);

// The same of an answer: a Location at the engine becomes a path at the proxy, as clients may not reach the
// engine.
http::Headers passed_back(const http::Headers& headers, std::string_view engine_url);

// The target of a request as its client wrote it.
std::string target_of(const http::Request& request);

// The client requests a protocol upgrade.
bool asks_for_websocket(const http::Request& request);

bool is_event_stream(const http::Response& answer);
// A response of unknown length whose pieces the client wants at once: events, lines of JSON, audio.
bool is_stream(const http::Response& answer);

}  // namespace octavo::fleet
