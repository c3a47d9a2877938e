// Checks a request against an engine's limits, without calling the engine.
#pragma once

#include "base/error.h"
#include "request/engine_info.h"
#include "request/request.h"

namespace octavo {

// Errors (invalid_argument, naming field and limit): ids are outside the vocabulary; the prompt is empty
// or leaves no room for an answer; an index in answers_so_far is not below n.
Result<> check_request(const Request& request, const EngineInfo& engine);

}  // namespace octavo
