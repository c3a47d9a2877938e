// A router's message to the peers, which reports its requests in flight at each worker. A message has
// totals instead of changes, so that the next message corrects the effects of a lost one.
//
// Format in msgpack: [1, sender, all, [[worker, requests, prefill tokens, context tokens, own tokens],
// ...]].
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
