// A router's message to its peers: its current requests in flight at each worker. The message has totals,
// while NVIDIA Dynamo's routers send changes: after a lost message the next one corrects every count.
//
// In msgpack: [1, sender, all, [[worker, requests, prefill tokens, context tokens, own tokens], ...]].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/decide/inflight.h"

namespace octavo::fleet {

constexpr std::int64_t kLoadMessageBytesMax = 4 << 20;  // a longer one ends the connection

std::string write_load_message(const LoadMessage& message);
// Errors: corrupt; also more workers than a fleet has, and loads that no sum could hold.
Result<LoadMessage> read_load_message(std::string_view text);

}  // namespace octavo::fleet
