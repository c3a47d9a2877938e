// Decompresses request bodies, so that the picker can read them.
#pragma once

#include <cstdint>
#include <expected>

#include "fleet/balance/choice.h"
#include "http/body_budget.h"
#include "http/message.h"

namespace octavo::fleet {

// Decompresses a body with Content-Encoding gzip or deflate. Returns whether it has decompressed the body.
// Bodies with a different encoding stay as they are, because the endpoint may accept them. Returns a
// refusal if the data are invalid, exceed `bytes_max`, or exceed the memory that `share` has left.
std::expected<bool, Refusal> expand_body(http::Request& request, http::BodyShare& share,
                                         std::uint64_t bytes_max);

}  // namespace octavo::fleet
