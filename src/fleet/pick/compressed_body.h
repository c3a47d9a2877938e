// Decompresses request bodies.
#pragma once

#include <cstdint>
#include <expected>

#include "fleet/balance/choice.h"
#include "http/body_budget.h"
#include "http/message.h"

namespace octavo::fleet {

// Decompresses a body with Content-Encoding gzip or deflate, and returns whether it has done so. Keeps other
// codings, since the endpoint may accept them. Refuses more than `bytes_max` bytes, invalid data, and bodies
// for which `share` has no memory left.
std::expected<bool, Refusal> expand_body(http::Request& request, http::BodyShare& share,
                                         std::uint64_t bytes_max);

}  // namespace octavo::fleet
