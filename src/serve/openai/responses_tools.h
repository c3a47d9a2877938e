// Converts the tools of /v1/responses to functions of a chat. A tool of /v1/responses can be in a namespace,
// and the input of a custom tool is plain text. A function of a chat has one flat name and JSON arguments.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "openai/request_fields.h"

namespace octavo::openai {

struct ResponsesTool {
  std::string name;
  std::string name_space{};
  bool custom = false;  // whether the input is plain text
};

// The tools that have a namespace or are custom, by the name of the function in the chat.
using ResponsesTools = std::map<std::string, ResponsesTool, std::less<>>;

// Returns "namespace__name", as in vLLM.
std::string flat_tool_name(std::string_view name_space, std::string_view name);

// Convert between the input of a custom tool and the arguments of its function. If the arguments are not a
// JSON object with an input, custom_tool_input() returns their text.
std::string custom_tool_arguments(std::string_view input);
std::string custom_tool_input(const std::string& arguments);

// A list of tools in an item of the input.
struct ToolList {
  std::string field;  // name for errors
  const boost::json::array* tools;
};

// Converts tools and tool_choice. A tool of `added` replaces an earlier tool with its name. Adds the types of
// tools that are left out (ServerTools) to `ignored`.
Result<ResponsesTools> convert_responses_tools(Fields& fields, const std::vector<ToolList>& added,
                                               boost::json::object& chat, std::vector<std::string>& ignored);

}  // namespace octavo::openai
