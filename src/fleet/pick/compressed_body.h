// Expands request bodies with a Content-Encoding.
#pragma once

#include <cstdint>
#include <expected>

#include "fleet/balance/choice.h"
#include "http/body_budget.h"
#include "http/message.h"

namespace octavo::fleet {

// Expands the body if it is compressed by gzip or deflate, and returns whether it was. Other codings stay: the
// endpoint says whether it accepts them. Refusals: more than `bytes_max` bytes, invalid data, or no share left.
std::expected<bool, Refusal> expand_body(http::Request& request, http::BodyShare& share, std::uint64_t bytes_max);

}  // namespace octavo::fleet
