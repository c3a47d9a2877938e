// Checks a request against the limits in EngineInfo, before the request is sent to the engine.
#pragma once

#include "base/error.h"
#include "request/engine_info.h"
#include "request/request.h"

namespace octavo {

// Returns invalid_argument, with the field and the limit, in these cases: a token id is outside the
// vocabulary; the prompt is empty or leaves no room for output; an index in answers_so_far is not below n.
Result<> check_request(const Request& request, const EngineInfo& engine);

}  // namespace octavo
