// A router's message to its peers: its requests in flight at each worker. The numbers are totals, not
// changes, so if a message is lost, the next one corrects the peers' numbers.
//
// Format in msgpack: [1, sender, all, [[worker, requests, prefill tokens, context tokens, own tokens], ...]].
// The numbers are the fields of Load (decide/inflight.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/decide/inflight.h"

namespace octavo::fleet {

constexpr std::int64_t kLoadMessageBytesMax = 4 << 20;  // a longer message ends the connection

std::string write_load_message(const LoadMessage& message);
// Returns an error if the message is corrupt, has more workers than a fleet can have, or has loads whose
// sums overflow.
Result<LoadMessage> read_load_message(std::string_view text);

}  // namespace octavo::fleet
