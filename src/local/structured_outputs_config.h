#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar_source.h"

namespace octavo {

// Reads --structured-outputs-config, vLLM's JSON object. Example: {"disable_any_whitespace": true,
// "unknown_keywords": "refuse", "unique_items": "refuse", "member_order": "any"}. `backend` and
// `disable_fallback` have no effect, because there is only one backend. Errors name the field.
Result<grammar::JsonOptions> parse_structured_outputs_config(std::string_view json);

}  // namespace octavo
