// Tools that change within a conversation: the blocks tool_addition and tool_removal of system messages.
#pragma once

#include <boost/json/array.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace octavo::anthropic {

bool is_tool_change(std::string_view type);

// Returns the tools that are available at the end of the conversation (a chat template prints only one list
// of tools). Returns nullopt if no message changes the tools. Both arguments may be null. Returns an error if
// a block names an unknown tool, or if there are too many tools or changes.
Result<std::optional<boost::json::array>> changed_tools(const boost::json::array* tools,
                                                        const boost::json::array* messages);

}  // namespace octavo::anthropic
