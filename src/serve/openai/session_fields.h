// Reads session names and cache hints from requests of all protocols. docs/guides/sessions.md lists them.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "openai/request_fields.h"
#include "request/session.h"

namespace octavo::openai {

struct SessionHints {
  SessionUse use;  // use.key.id is empty if no field names the session
  // Dynamo's agent_hints.priority; higher values run first
  std::optional<int> request_priority{};
};

// Reads session_id, prompt_cache_key, cache_control, kv_hints and nvext. Adds the names of fields without
// effect to `unknown`. Returns an error with the field's name if a value is invalid.
Result<SessionHints> read_session(Fields& fields, std::vector<std::string>& unknown);

// Returns an error with this field if the session name is invalid.
Result<> check_session_id(std::string_view field, std::string_view id);

// Reads {"type": "ephemeral", "ttl": "5m" | "1h"}. Returns the time to live in seconds.
Result<int> read_cache_control(const boost::json::value& value, std::string_view field);

}  // namespace octavo::openai
