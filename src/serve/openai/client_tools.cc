#include "serve/openai/client_tools.h"

#include <algorithm>
#include <iterator>

namespace octavo::openai {
namespace {

constexpr ClientTool kClientTools[] = {
    {"local_shell_call", "local_shell_call_output", "local_shell", "action"},
    {"shell_call", "shell_call_output", "shell", "action"},
    {"apply_patch_call", "apply_patch_call_output", "apply_patch", "operation"},
    {"tool_search_call", "tool_search_output", "tool_search", "arguments"},
};

}  // namespace

const ClientTool* client_tool(std::string_view type) {
  const auto found = std::ranges::find_if(
      kClientTools, [&](const ClientTool& tool) { return type == tool.call || type == tool.output; });
  return found == std::end(kClientTools) ? nullptr : found;
}

}  // namespace octavo::openai
