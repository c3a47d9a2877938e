// Converts the tools of a body of /v1/messages to those of a chat.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/openai/generation_fields.h"

namespace octavo::anthropic {

// Adds `tools`, `tool_choice` and `parallel_tool_calls` to the chat. Adds the types of tools that had no
// effect to `unknown`.
Result<> convert_tools(openai::Fields& fields, boost::json::object& chat, std::vector<std::string>& unknown);

Result<> refuse_servers(openai::Fields& fields);

}  // namespace octavo::anthropic
