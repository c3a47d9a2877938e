// Checks a request against an engine's limits, without the engine.
#pragma once

#include "base/error.h"
#include "request/engine_info.h"
#include "request/request.h"

namespace octavo {

// Errors (invalid_argument, naming field and limit): ids outside the vocabulary, a prompt that is empty or
// leaves no room for an answer, answers_so_far of answers that there are not.
Result<> check_request(const Request& request, const EngineInfo& engine);

}  // namespace octavo
