// A router's message to its peers: its current requests in flight at each worker. The message has totals,
// unlike those of NVIDIA Dynamo's routers, which send changes. So if a message is lost, the next one corrects
// every number.
//
// Format in msgpack: [1, sender, all, [[worker, requests, prefill tokens, context tokens, own tokens], ...]].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/decide/inflight.h"

namespace octavo::fleet {

constexpr std::int64_t kLoadMessageBytesMax = 4 << 20;  // a longer message ends the connection

std::string write_load_message(const LoadMessage& message);
// Errors: corrupt; also if there are more workers than a fleet can have, or loads are too large for sums.
Result<LoadMessage> read_load_message(std::string_view text);

}  // namespace octavo::fleet
