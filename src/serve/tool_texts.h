// Tools and tool calls as text, for chat templates that do not read tools.
#pragma once

#include <boost/json/array.hpp>
#include <string_view>

#include "base/error.h"

namespace octavo {

struct ToolTexts {
  std::string_view tools;     // JSON list; "": none
  bool calls = false;         // whether the messages have calls or results that the template does not print
  bool takes_system = false;  // whether the template has system messages
};

// Changes the messages so that a template that prints only roles and contents shows the tools, in the form of
// the dialect `hermes`:
// - The system message lists the tools and the form of calls. If the template has no system messages, the
//   first message of the user does.
// - With `calls`, calls are at the end of the assistant's content, and results are messages of the user,
// which
//   are joined with the next one.
Result<> write_tools(const ToolTexts& texts, boost::json::array& messages);

}  // namespace octavo
