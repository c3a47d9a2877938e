// Tools of /v1/responses as functions of chats. A chat's function has one flat name and JSON arguments; here
// a tool may be in a namespace, and the input of a custom tool is plain text.
#pragma once

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
  std::string name_space{};  // "": none
  bool custom = false;       // its input is plain text
};

// Tools whose calls differ from a chat's, by the function's name in the chat.
using ResponsesTools = std::map<std::string, ResponsesTool, std::less<>>;

// As in vLLM: "namespace__name".
std::string flat_tool_name(std::string_view name_space, std::string_view name);

// Arguments of a custom tool's function, and the input that such arguments contain. Text that is no JSON
// object with an input is the input itself.
std::string custom_tool_arguments(std::string_view input);
std::string custom_tool_input(const std::string& arguments);

// Converts tools and tool_choice. Adds the types of tools that are left out (ServerTools) to `ignored`.
Result<ResponsesTools> convert_responses_tools(Fields& fields, boost::json::object& chat,
                                               std::vector<std::string>& ignored);

}  // namespace octavo::openai
