// What a proxy does with any message: which header fields go on, how much it holds.
#pragma once

#include <cstddef>

#include "http/message.h"

namespace octavo::fleet {

inline constexpr std::size_t kGatheredBytesMax =
    64 << 20;  // of an answer that is no stream; beyond it is streamed
inline constexpr std::size_t kUnsentBytesMax =
    256 << 10;  // the replica waits while the client has so much to take

// Those that are of the message, not of one connection (RFC 9110, 7.6.1), and are not written anew by this
// side.
http::Headers passed_on(const http::Headers& headers);

}  // namespace octavo::fleet
