#include "serve/openai/responses_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/exact_json.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/server_tools.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

// Name of the only argument that the function of a custom tool has.
constexpr std::string_view kInput = "input";

// Tools that OpenAI's servers run, or whose schemas only OpenAI's models know. Codex always sends some of
// these tools.
bool is_hosted(std::string_view type) {
  constexpr std::string_view kTypes[] = {"file_search",
                                         "code_interpreter",
                                         "image_generation",
                                         "computer",
                                         "local_shell",
                                         "shell",
                                         "apply_patch",
                                         "mcp",
                                         "tool_search",
                                         "computer_use_preview",
                                         "programmatic_tool_calling"};
  return type.starts_with("web_search") || std::ranges::find(kTypes, type) != std::end(kTypes);
}

class ToolConverter {
 public:
  Result<> add(const json::value& tool, const std::string& at, std::string_view name_space = "") {
    if (!tool.is_object()) return invalid(at, "must be an object");
    Fields fields(tool.get_object(), at + ".");
    std::string type;
    TRY_VOID(fields.text("type", type));
    if (type.empty()) return invalid(fields.full_name("type"), "is missing");
    if (type == "function") return add_function(fields, tool.get_object(), name_space);
    if (type == "custom") return add_custom(fields, name_space);
    if (type == "namespace" && name_space.empty()) return add_namespace(fields);
    if (!is_hosted(type))
      return invalid(fields.full_name("type"),
                     "must be function{}, got \"{}\"; hosted tools of OpenAI, such as web_search, are "
                     "ignored if the request also has other tools",
                     name_space.empty() ? ", custom or namespace" : " or custom", type.substr(0, 64));
    left_out_.leave_out(type, fields.full_name("type"));
    return {};
  }

  // From now on, a tool replaces an earlier one with its name.
  void replace() { replaces_ = true; }

  // Returns all functions, or an error if no tool remains.
  Result<json::array> finish(std::vector<std::string>& ignored) {
    TRY_VOID(left_out_.finish(!functions_.empty(), ignored));
    return std::move(functions_);
  }
  ResponsesTools take_tools() { return std::move(tools_); }

 private:
  Result<> push(Fields& fields, json::object function, ResponsesTool tool) {
    std::string flat = flat_tool_name(tool.name_space, tool.name);
    if (replaces_) {
      if (++replaced_ > kToolsMax) return invalid("input", "must add at most {} tools", kToolsMax);
      remove(flat);
    }
    if (functions_.size() >= kToolsMax) return invalid("tools", "must contain at most {} tools", kToolsMax);
    if (tool.custom || !tool.name_space.empty()) {
      function["name"] = flat;
      if (!tools_.emplace(std::move(flat), std::move(tool)).second)
        return invalid(fields.full_name("name"), "is also the name of another tool");
    }
    functions_.push_back(json::object{{"type", "function"}, {"function", std::move(function)}});
    return {};
  }

  void remove(std::string_view flat) {
    tools_.erase(std::string(flat));
    const auto same = [&](const json::value& tool) {
      const json::value* name = tool.at("function").as_object().if_contains("name");
      return name && name->is_string() && std::string_view(name->get_string()) == flat;
    };
    const auto found = std::ranges::find_if(functions_, same);
    if (found != functions_.end()) functions_.erase(found);
  }

  static Result<ResponsesTool> named(Fields& fields, std::string_view name_space) {
    ResponsesTool tool{.name = {}, .name_space = std::string(name_space)};
    TRY_VOID(fields.text("name", tool.name));
    return tool;
  }

  Result<> add_function(Fields& fields, json::object function, std::string_view name_space) {
    function.erase("type");
    if (const json::value* strict = function.if_contains("strict"); strict && strict->is_null())
      function.erase("strict");
    TRY(ResponsesTool tool, named(fields, name_space));
    if (tool.name.empty() && !name_space.empty()) return invalid(fields.full_name("name"), "is missing");
    return push(fields, std::move(function), std::move(tool));
  }

  // If the tool has a grammar for its input, adds the grammar to the description, because the server does not
  // enforce it.
  Result<> add_custom(Fields& fields, std::string_view name_space) {
    TRY(ResponsesTool tool, named(fields, name_space));
    if (tool.name.empty()) return invalid(fields.full_name("name"), "is missing");
    tool.custom = true;
    std::string description, type = "text", syntax, definition;
    TRY_VOID(fields.text("description", description));
    TRY(const json::object* format, fields.object("format"));
    if (format) {
      Fields f(*format, fields.full_name("format") + ".");
      TRY_VOID(f.text("type", type));
      TRY_VOID(f.text("syntax", syntax));
      TRY_VOID(f.text("definition", definition));
      if (type != "text" && type != "grammar")
        return invalid(f.full_name("type"), "must be \"text\" or \"grammar\", got \"{}\"", type);
    }
    if (type == "grammar")
      description += fmt::format("\nThe input must match this {} grammar:\n{}", syntax, definition);
    json::object parameters{{"type", "object"},
                            {"properties", {{kInput, {{"type", "string"}}}}},
                            {"required", json::array{kInput}},
                            {"additionalProperties", false}};
    return push(fields, {{"description", description}, {"parameters", std::move(parameters)}},
                std::move(tool));
  }

  Result<> add_namespace(Fields& fields) {
    std::string name;
    TRY_VOID(fields.text("name", name));
    if (name.empty()) return invalid(fields.full_name("name"), "is missing");
    TRY(const json::array* tools, fields.array("tools"));
    const std::string list = fields.full_name("tools");
    for (std::size_t i = 0; tools && i < tools->size(); ++i)
      TRY_VOID(add((*tools)[i], fmt::format("{}[{}]", list, i), name));
    return {};
  }

  ServerTools left_out_;
  json::array functions_;
  ResponsesTools tools_;
  bool replaces_ = false;
  std::size_t replaced_ = 0;  // number of tools after replace(); limited, because each one is searched for
};

// Reads {"type", "name", "namespace"} of tool_choice. Returns the function's flat name, or "" for a hosted
// tool.
Result<std::string> chosen_name(const json::object& choice, const std::string& at) {
  Fields fields(choice, at + ".");
  std::string type, name, name_space;
  TRY_VOID(fields.text("type", type));
  TRY_VOID(fields.text("name", name));
  TRY_VOID(fields.text("namespace", name_space));
  return type == "function" || type == "custom" ? flat_tool_name(name_space, name) : "";
}

json::object named_function(std::string_view name) {
  return {{"type", "function"}, {"function", {{"name", name}}}};
}

// Converts {"type": "allowed_tools", "mode", "tools"} to the format of chats.
Result<json::value> convert_allowed(Fields& choice, std::vector<std::string>& ignored) {
  std::string mode;
  TRY_VOID(choice.text("mode", mode));
  TRY(const json::array* tools, choice.array("tools"));
  json::array functions;
  for (std::size_t i = 0; tools && i < tools->size(); ++i) {
    const std::string at = fmt::format("tool_choice.tools[{}]", i);
    if (!(*tools)[i].is_object()) return invalid(at, "must be an object");
    const json::object& tool = (*tools)[i].get_object();
    TRY(const std::string name, chosen_name(tool, at));
    if (!name.empty())
      functions.push_back(named_function(name));
    else
      ignored.push_back("tool_choice.tools.type=" +
                        json::serialize(tool.contains("type") ? tool.at("type") : ""));
  }
  return json::value{{"type", "allowed_tools"},
                     {"allowed_tools", {{"mode", mode}, {"tools", std::move(functions)}}}};
}

Result<json::value> convert_choice(const json::value& choice, std::vector<std::string>& ignored) {
  if (!choice.is_object()) return choice;
  Fields fields(choice.get_object(), "tool_choice.");
  std::string type;
  TRY_VOID(fields.text("type", type));
  if (type == "allowed_tools") return convert_allowed(fields, ignored);
  if (type != "function" && type != "custom")
    return invalid("tool_choice.type", "must be \"function\", \"custom\" or \"allowed_tools\", got \"{}\"",
                   type);
  TRY(const std::string name, chosen_name(choice.get_object(), "tool_choice"));
  return json::value(named_function(name));
}

}  // namespace

std::string flat_tool_name(std::string_view name_space, std::string_view name) {
  return name_space.empty() ? std::string(name) : fmt::format("{}__{}", name_space, name);
}

std::string custom_tool_arguments(std::string_view input) {
  return json::serialize(json::object{{kInput, input}});
}

std::string custom_tool_input(const std::string& arguments) {
  boost::system::error_code broken;
  const json::value read = parse_exact_json(arguments, broken);
  const json::value* input = !broken && read.is_object() ? read.get_object().if_contains(kInput) : nullptr;
  return input && input->is_string() ? std::string(input->get_string()) : arguments;
}

Result<ResponsesTools> convert_responses_tools(Fields& fields, const std::vector<ToolList>& added,
                                               json::object& chat, std::vector<std::string>& ignored) {
  TRY(const json::array* tools, fields.array("tools"));
  ToolConverter converter;
  for (std::size_t i = 0; tools && i < tools->size(); ++i)
    TRY_VOID(converter.add((*tools)[i], fmt::format("tools[{}]", i)));
  converter.replace();
  for (const ToolList& list : added)
    for (std::size_t i = 0; i < list.tools->size(); ++i)
      TRY_VOID(converter.add((*list.tools)[i], fmt::format("{}[{}]", list.field, i)));
  TRY(json::array functions, converter.finish(ignored));
  const bool any = !functions.empty();
  if (any) chat["tools"] = std::move(functions);
  const json::value* choice = fields.any("tool_choice");
  if (choice && (any || *choice != "auto")) {
    TRY(chat["tool_choice"], convert_choice(*choice, ignored));
  }
  return converter.take_tools();
}

}  // namespace octavo::openai
