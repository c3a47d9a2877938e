// Tools and tool calls as text, for chat templates that do not read tools.
#pragma once

#include <boost/json/array.hpp>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Changes the messages so that a template that prints only roles and contents shows the tools, in the form of
// the dialect `hermes`:
// - The system message lists `tools` (a JSON list, or "" for none) and the form of calls. If the template has
//   no system messages (`takes_system`), the first message of the user does.
// - Calls are at the end of the assistant's content.
// - Results of tools are messages of the user. Consecutive messages of the user are joined.
Result<> write_tools(std::string_view tools, bool takes_system, boost::json::array& messages);

}  // namespace octavo
