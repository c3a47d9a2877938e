// What one router tells the others: the requests that it has in flight at each worker now. Not what came and
// went (NVIDIA Dynamo's routers tell that), but where things stand: who has missed a message is right again
// with the next one, and nothing that is lost stays counted for ever.
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
