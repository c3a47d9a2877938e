// Calls of tools that OpenAI's models know, and that the client runs. This server makes no such calls, but a
// conversation that began elsewhere has them. For the model they are calls of a function.
#pragma once

#include <string_view>

namespace octavo::openai {

struct ClientTool {
  std::string_view call, output;  // types of the items
  std::string_view function;
  std::string_view arguments;  // member of the call that contains the arguments
};

// Returns the tool whose call or output has this type of an item, or null.
const ClientTool* client_tool(std::string_view type);

}  // namespace octavo::openai
