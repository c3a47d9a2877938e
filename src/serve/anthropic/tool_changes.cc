#include "serve/anthropic/tool_changes.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <string>
#include <utility>

#include "openai/request_fields.h"
#include "serve/openai/chat_request.h"

namespace octavo::anthropic {

namespace json = boost::json;
using openai::Fields;

namespace {

std::string_view string_at(const json::object& object, std::string_view field) {
  const json::value* found = object.if_contains(field);
  return found && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}

std::string_view string_at(const json::value& value, std::string_view field) {
  return value.is_object() ? string_at(value.get_object(), field) : std::string_view();
}

class Tools {
 public:
  explicit Tools(const json::array* tools) {
    if (tools) tools_ = *tools;
  }

  Result<> change(const json::object& block, const std::string& name) {
    Fields fields(block, name + ".");
    std::string kind, type, tool_name;
    TRY_VOID(fields.text("type", kind));
    TRY(const json::object* tool, fields.object("tool"));
    if (!tool) return invalid(name + ".tool", "is missing");
    Fields changed(*tool, name + ".tool.");
    TRY_VOID(changed.text("type", type));
    if (kind == "tool_addition" && type == "tool_definition") {
      TRY(const json::object* definition, changed.object("definition"));
      if (!definition) return invalid(name + ".tool.definition", "is missing");
      discard(string_at(*definition, "name"));
      tools_.emplace_back(*definition);
      return {};
    }
    if (type != "tool_reference")
      return invalid(name + ".tool.type", "must be tool_reference{}, got \"{}\"",
                     kind == "tool_addition" ? " or tool_definition" : "", type);
    TRY_VOID(changed.text("name", tool_name));
    if (find(tools_, tool_name) == tools_.end() && find(removed_, tool_name) == removed_.end())
      return invalid(name + ".tool.name", "\"{}\" is not in tools", tool_name);
    if (kind == "tool_removal")
      remove(tool_name);
    else
      restore(tool_name);
    return {};
  }

  json::array take() { return std::move(tools_); }

 private:
  static json::array::iterator find(json::array& tools, std::string_view name) {
    return std::ranges::find_if(tools,
                                [&](const json::value& tool) { return string_at(tool, "name") == name; });
  }
  static void move_tool(std::string_view name, json::array& from, json::array& to) {
    const auto found = find(from, name);
    if (found == from.end()) return;
    to.push_back(std::move(*found));
    from.erase(found);
  }
  // Removes the tool completely, so that a later tool_addition cannot restore its old definition.
  void discard(std::string_view name) {
    for (json::array* tools : {&tools_, &removed_})
      if (const auto found = find(*tools, name); found != tools->end()) tools->erase(found);
  }
  void remove(std::string_view name) { move_tool(name, tools_, removed_); }
  void restore(std::string_view name) { move_tool(name, removed_, tools_); }

  json::array tools_, removed_;
};

}  // namespace

bool is_tool_change(std::string_view type) { return type == "tool_addition" || type == "tool_removal"; }

Result<std::optional<json::array>> changed_tools(const json::array* tools, const json::array* messages) {
  std::optional<Tools> changed;
  std::size_t changes = 0;
  for (std::size_t i = 0; messages && i < messages->size(); ++i) {
    const json::object* message = (*messages)[i].if_object();
    if (!message || string_at(*message, "role") != "system") continue;
    const json::value* content = message->if_contains("content");
    for (std::size_t j = 0; content && content->is_array() && j < content->get_array().size(); ++j) {
      const json::value& block = content->get_array()[j];
      if (!is_tool_change(string_at(block, "type"))) continue;
      // Limits the numbers of tools and changes first, because each change searches all tools.
      if (!changed && tools && tools->size() > openai::kToolsMax)
        return invalid("tools", "must have at most {} tools, got {}", openai::kToolsMax, tools->size());
      if (++changes > openai::kMessagesMax)
        return invalid("messages", "must have at most {} changes of tools", openai::kMessagesMax);
      if (!changed) changed.emplace(tools);
      TRY_VOID(changed->change(block.get_object(), fmt::format("messages[{}].content[{}]", i, j)));
    }
  }
  return changed ? std::optional(changed->take()) : std::nullopt;
}

}  // namespace octavo::anthropic
