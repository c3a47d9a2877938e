// Tools that change within a conversation: blocks tool_addition and tool_removal of system messages.
#pragma once

#include <boost/json/array.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace octavo::anthropic {

bool is_tool_change(std::string_view type);

// Returns the tools at the end of the conversation, because a chat template prints one list; nullopt: no
// message changes them. Both may be null. Errors: a block names a tool that does not exist.
Result<std::optional<boost::json::array>> changed_tools(const boost::json::array* tools,
                                                        const boost::json::array* messages);

}  // namespace octavo::anthropic
