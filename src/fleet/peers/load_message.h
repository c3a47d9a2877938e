// A router's message to its peers: its requests in flight at each worker. The message has totals, so the next
// message corrects the effects of a lost one (NVIDIA Dynamo's routers send changes).
//
// Format in msgpack: [1, sender, all, [[worker, requests, prefill tokens, context tokens, own tokens], ...]].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/decide/inflight.h"

namespace octavo::fleet {

constexpr std::int64_t kLoadMessageBytesMax = 4 << 20;  // limit; a longer message ends the connection

std::string write_load_message(const LoadMessage& message);
// Errors: corrupt; more workers than a fleet can have; loads whose sums overflow.
Result<LoadMessage> read_load_message(std::string_view text);

}  // namespace octavo::fleet
