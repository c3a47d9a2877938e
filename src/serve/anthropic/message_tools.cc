#include "serve/anthropic/message_tools.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "serve/anthropic/tool_changes.h"
#include "serve/openai/server_tools.h"

namespace octavo::anthropic {

namespace json = boost::json;
using openai::Fields;

namespace {

Result<> convert_tool_choice(const json::object& choice, json::object& chat) {
  Fields c(choice, "tool_choice.");
  std::string type;
  TRY_VOID(c.text("type", type));
  bool one_at_most = false;
  TRY_VOID(c.boolean("disable_parallel_tool_use", one_at_most));
  if (one_at_most) chat["parallel_tool_calls"] = false;
  if (type == "auto" || type == "none") {
    chat["tool_choice"] = type;
  } else if (type == "any") {
    chat["tool_choice"] = "required";
  } else if (type == "tool") {
    std::string name;
    TRY_VOID(c.text("name", name));
    if (name.empty()) return invalid("tool_choice.name", "is missing");
    chat["tool_choice"] = json::object{{"type", "function"}, {"function", {{"name", name}}}};
  } else {
    return invalid("tool_choice.type", "must be \"auto\", \"any\", \"tool\" or \"none\"");
  }
  return {};
}

// Returns whether Anthropic's servers run tools of this type. Other types with a date, such as bash_20250124,
// are run by the client, but only Anthropic's models know their schemas.
bool is_server_tool(std::string_view type) {
  return std::ranges::any_of(
      std::to_array<std::string_view>({"web_search_", "web_fetch_", "code_execution_", "tool_search_tool_"}),
      [&](std::string_view kind) { return type.starts_with(kind); });
}

Result<json::value> convert_tool(Fields& tool, const std::string& at) {
  TRY(const json::object* schema, tool.object("input_schema"));
  if (!schema) return invalid(at + ".input_schema", "is missing");
  json::object function{{"parameters", *schema}};
  if (!schema->contains("type")) function["parameters"].get_object()["type"] = "object";
  for (const std::string_view field : {"name", "description", "strict"})
    if (const json::value* value = tool.any(field)) function[field] = *value;
  return json::value{{"type", "function"}, {"function", std::move(function)}};
}

}  // namespace

Result<> convert_tools(Fields& fields, json::object& chat, std::vector<std::string>& unknown) {
  TRY(const json::array* tools, fields.array("tools"));
  TRY(const json::array* messages, fields.array("messages"));
  TRY(const std::optional<json::array> changed, changed_tools(tools, messages));
  if (changed) tools = &*changed;
  TRY(const json::object* choice, fields.object("tool_choice"));
  const json::value* forced = choice ? choice->if_contains("name") : nullptr;
  json::array functions;
  openai::ServerTools left_out;
  for (std::size_t i = 0; tools && i < tools->size(); ++i) {
    const std::string at = fmt::format("tools[{}]", i);
    if (!(*tools)[i].is_object()) return invalid(at, "must be an object");
    Fields tool((*tools)[i].get_object(), at + ".");
    std::string type = "custom";
    TRY_VOID(tool.text("type", type));
    if (type == "custom") {
      TRY(json::value function, convert_tool(tool, at));
      functions.push_back(std::move(function));
      continue;
    }
    const json::value* name = tool.any("name");
    if (!is_server_tool(type) || (forced && name && *forced == *name))
      return invalid(at + ".type", "{} is not supported: send a tool with an input_schema", type);
    left_out.leave_out(type, at + ".type");
  }
  TRY_VOID(left_out.finish(!functions.empty(), unknown));
  if (functions.empty()) return {};
  chat["tools"] = std::move(functions);
  return choice ? convert_tool_choice(*choice, chat) : Result<>();
}

Result<> refuse_servers(Fields& fields) {
  TRY(const json::array* servers, fields.array("mcp_servers"));
  if (!servers || servers->empty()) return {};
  return invalid(
      "mcp_servers",
      "is not supported, got {} servers: send their tools with an input_schema, or use /v1/responses with "
      "tools of type mcp (--mcp-allow)",
      servers->size());
}

}  // namespace octavo::anthropic
