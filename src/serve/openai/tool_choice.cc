#include "serve/openai/tool_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "grammar/json_value.h"
#include "grammar/tool_calls.h"
#include "serve/openai/call_cursor.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

const json::object& function_of(const json::value& tool) { return tool.at("function").as_object(); }

std::string_view name_of(const json::value& tool) { return function_of(tool).at("name").as_string(); }

Result<grammar::Tool> read_tool(const json::value& tool, std::size_t index) {
  Fields function(function_of(tool), fmt::format("tools[{}].function.", index));
  grammar::Tool out;
  TRY_VOID(function.text("name", out.name));
  if (const json::value* parameters = function.any("parameters"))
    out.parameters = exact_json_text(*parameters);
  TRY_VOID(function.boolean("strict", out.strict));
  return out;
}

Result<std::vector<grammar::Tool>> read_tools(const json::array& tools) {
  std::vector<grammar::Tool> all;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    TRY(all.emplace_back(), read_tool(tools[i], i));
  }
  return all;
}

// Reads the name in {"function": {"name"}}.
Result<std::string> read_named(const json::object& choice, const json::array& tools, const std::string& at) {
  Fields f(choice, at + ".");
  TRY(const json::object* function, f.object("function"));
  if (!function) return invalid(at + ".function", "is missing");
  Fields named(*function, at + ".function.");
  std::string name;
  TRY_VOID(named.text("name", name));
  if (name.empty()) return invalid(at + ".function.name", "is missing");
  for (const json::value& tool : tools)
    if (name_of(tool) == name) return name;
  return invalid(at + ".function.name", "{} is not in the list of tools", name);
}

// Reads OpenAI's {"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}. Removes from `all` the tools
// that are not allowed, and returns the mode.
Result<std::string> read_allowed(const json::object& choice, const json::array& tools,
                                 std::vector<grammar::Tool>& all) {
  const std::string at = "tool_choice.allowed_tools";
  Fields f(choice, "tool_choice.");
  TRY(const json::object* given, f.object("allowed_tools"));
  if (!given) return invalid(at, "is missing");
  Fields allowed(*given, at + ".");
  std::string mode;
  TRY_VOID(allowed.text("mode", mode));
  if (mode != "auto" && mode != "required")
    return invalid(at + ".mode", "must be \"auto\" or \"required\", got \"{}\"", mode);
  TRY(const json::array* listed, allowed.array("tools"));
  if (!listed || listed->empty()) return invalid(at + ".tools", "must name at least one tool");
  if (listed->size() > tools.size())
    return invalid(at + ".tools", "must be at most {}, which is the number of tools, got {}", tools.size(),
                   listed->size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < listed->size(); ++i) {
    const std::string item = fmt::format("{}.tools[{}]", at, i);
    if (!(*listed)[i].is_object()) return invalid(item, "must be an object");
    TRY(names.emplace_back(), read_named((*listed)[i].get_object(), tools, item));
  }
  std::erase_if(
      all, [&](const grammar::Tool& tool) { return std::ranges::find(names, tool.name) == names.end(); });
  return mode;
}

Result<grammar::GrammarSource> forced_output(std::vector<grammar::Tool> tools, const ForcedTool& forced,
                                             bool parallel) {
  if (!forced.function.empty())
    std::erase_if(tools, [&](const grammar::Tool& tool) { return tool.name != forced.function; });
  auto schema = forced.function.empty() ? grammar::tool_list_schema(tools, parallel)
                                        : grammar::tool_arguments_schema(tools.front());
  if (!schema) return invalid("tools", "{}", schema.error().message);
  return grammar::GrammarSource{
      .kind = grammar::GrammarKind::json_schema, .text = *std::move(schema), .field = "tools"};
}

// Returns the constraint's JSON Schema, or "" if the constraint is not a schema.
std::string schema_of(const grammar::GrammarSource& output) {
  if (output.kind == grammar::GrammarKind::json_object) return R"({"type":"object"})";
  return output.kind == grammar::GrammarKind::json_schema ? output.text : "";
}

// Sets the constraint for answers that may call tools, if they need a constraint.
Result<> bind_calls(const grammar::ToolDialect& dialect, std::span<const std::string> special,
                    std::span<const grammar::Tool> tools, ToolRequest& request) {
  const bool strict = std::ranges::any_of(tools, &grammar::Tool::strict);
  const std::string schema = request.output ? schema_of(*request.output) : "";
  const bool narrowed = request.use.known_only && !request.output;
  if (!strict && !narrowed && schema.empty()) return {};
  if (strict && request.output && schema.empty())
    return invalid("tool_choice", "a strict tool cannot be combined with {}", request.output->field);
  auto tag =
      schema.empty()
          ? grammar::tool_call_tag(tools, grammar::ToolChoice::free, request.use.parallel, dialect, special)
          : grammar::tool_call_or_json_tag(tools, schema, request.use.parallel, dialect, special);
  // A grammar cannot constrain calls of this dialect. So only the schema of response_format constrains the
  // answer, and the tool parser checks known_only.
  if (!tag && !strict) return {};
  if (!tag) return invalid("tools", "{}", tag.error().message);
  request.output = {.kind = grammar::GrammarKind::structural_tag,
                    .text = *std::move(tag),
                    .field = request.output ? request.output->field : "tools"};
  request.use.bound = true;
  return {};
}

// Returns whether the tool parser needs the parameter types in the tools' schemas.
bool needs_types(const grammar::ToolDialect& dialect) {
  using Form = grammar::ToolDialect::Form;
  return dialect.form == Form::parameters || dialect.form == Form::gemma || dialect.numbered;
}

Result<> read_auto(const grammar::ToolDialect* dialect, std::span<const std::string> special,
                   std::vector<grammar::Tool> tools, ToolRequest& request) {
  if (!dialect)
    return invalid(
        "tool_choice",
        "\"auto\" (the default with tools) needs a server with --tool-call-parser NAME, because the chat "
        "template shows no known format of tool calls; or send \"none\", \"required\" or a function");
  request.use.dialect = dialect;
  KnownTools known;
  const bool typed =
      needs_types(*dialect) || std::ranges::any_of(dialect->habits.others, [](std::string_view other) {
        return needs_types(*grammar::tool_dialect(other));
      });
  for (const grammar::Tool& tool : tools)
    known[tool.name] = typed ? ToolParameters(tool.parameters, tool.strict) : ToolParameters();
  request.use.tools = std::make_shared<const KnownTools>(std::move(known));
  return bind_calls(*dialect, special, tools, request);
}

// Returns "auto", or "required" if it has set use.forced. Removes from `all` the tools that must not be
// called.
Result<std::string> read_mode(const json::value* choice, const json::array& tools,
                              std::vector<grammar::Tool>& all, ToolUse& use) {
  std::string mode = "auto";
  if (choice && choice->is_string()) mode = choice->get_string();
  if (choice && choice->is_object()) {
    const json::object& object = choice->get_object();
    const json::value* type = object.if_contains("type");
    if (type && *type == "allowed_tools") {
      TRY(mode, read_allowed(object, tools, all));
      use.known_only = true;
    } else {
      TRY(std::string name, read_named(object, tools, "tool_choice"));
      use.forced = ForcedTool{std::move(name)};
      return std::string("named");
    }
  }
  if (mode == "required") use.forced.emplace();
  if (mode == "auto" || mode == "required") return mode;
  return invalid("tool_choice", "must be \"none\", \"auto\", \"required\" or name a function");
}

// Returns whether calls in the dialect can contain this token.
bool writes(const grammar::ToolDialect& dialect, std::string_view token) {
  const auto holds = [&](std::string_view literal) { return !token.empty() && literal.contains(token); };
  const auto opens = [&](const grammar::ToolDialect::Opening& other) {
    return holds(other.text) || holds(other.end);
  };
  const std::string_view literals[] = {
      dialect.begin,    dialect.end,          dialect.call.begin,      dialect.call.end,
      dialect.name_end, dialect.id_mark,      dialect.parameter.begin, dialect.parameter.name_end,
      dialect.quote,    dialect.parameter.end};
  return std::ranges::any_of(literals, holds) || std::ranges::any_of(dialect.habits.openings, opens);
}

}  // namespace

Result<const grammar::ToolDialect*> tool_dialect_of(std::string_view parser, const Tokenizer& tokenizer) {
  // Newer Mistral tokenizers have another dialect.
  if (parser == "mistral" && tokenizer.id_of("[ARGS]")) parser = "mistral_v11";
  const grammar::ToolDialect* dialect = grammar::tool_dialect(parser);
  if (!dialect) return invalid("tool-call-parser", "the tool parser {} does not exist", parser);
  return dialect;
}

std::vector<std::int32_t> tool_tokens(const grammar::ToolDialect& dialect, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_special(id)) continue;
    const std::string token = tokenizer.token(id).value_or("");
    const auto other = [&](std::string_view name) { return writes(*grammar::tool_dialect(name), token); };
    if (writes(dialect, token) || std::ranges::any_of(dialect.habits.others, other)) ids.push_back(id);
  }
  return ids;
}

bool tools_unused(Fields& fields) {
  const json::value* choice = fields.any("tool_choice");
  return choice && *choice == "none";
}

bool may_call(Fields& fields, const grammar::ToolDialect* dialect) {
  if (dialect) return dialect->name == "hermes" && !tools_unused(fields);
  const json::value* choice = fields.any("tool_choice");
  return choice && (choice->is_object() || *choice == "required");
}

std::vector<std::string> special_tokens(const Tokenizer& tokenizer) {
  std::vector<std::string> names;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (tokenizer.is_special(id)) names.push_back(tokenizer.token(id).value_or(""));
  return names;
}

Result<ToolRequest> read_tool_use(Fields& fields, const grammar::ToolDialect* dialect,
                                  std::span<const std::string> special_tokens,
                                  std::optional<grammar::GrammarSource> output) {
  ToolRequest request{.use = {}, .output = std::move(output)};
  ToolUse& use = request.use;
  TRY(const json::array* tools, fields.array("tools"));
  const json::value* choice = fields.any("tool_choice");
  TRY_VOID(fields.boolean("parallel_tool_calls", use.parallel));
  const bool none = !tools || tools->empty();
  // Some clients send an empty list of tools with "auto".
  const bool text_only = none && (!choice || (tools && *choice == "auto"));
  if (tools_unused(fields) || text_only) return request;
  if (none) return invalid("tool_choice", "needs tools");
  TRY(std::vector<grammar::Tool> all, read_tools(*tools));
  TRY(const std::string mode, read_mode(choice, *tools, all, use));
  if (mode == "auto") {
    TRY_VOID(read_auto(dialect, special_tokens, std::move(all), request));
    return request;
  }
  // A response_format is ignored, because it constrains the content, and answers with a forced call have no
  // content.
  if (request.output && request.output->field.starts_with("structured_outputs"))
    return invalid("tool_choice", "a forced call cannot be combined with {}", request.output->field);
  TRY(request.output, forced_output(std::move(all), *use.forced, use.parallel));
  return request;
}

json::object tool_call_json(std::string_view id, std::string_view name, std::string_view arguments) {
  json::object function;
  if (!id.empty()) function["name"] = name;
  function["arguments"] = arguments;
  if (id.empty()) return {{"function", std::move(function)}};
  return {{"id", id}, {"type", "function"}, {"function", std::move(function)}};
}

std::string tool_call_id(const grammar::ToolDialect* dialect, const Hash128& bits) {
  if (!dialect || !dialect->short_ids)
    return fmt::format("chatcmpl-tool-{:016x}{:016x}", bits.high, bits.low);
  return fmt::format("{:016x}", bits.high).substr(0, 9);
}

std::vector<std::pair<std::string, std::string>> forced_calls(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> calls;
  CallCursor cursor(text);
  bool next = cursor.literal("[");
  std::string raw;
  while (next && cursor.value(raw)) {
    const auto call = grammar::parse_json(raw, "tool_choice");
    const grammar::Json* name = call ? call->find("name") : nullptr;
    const grammar::Json* arguments = call ? call->find("parameters") : nullptr;
    if (!name || !arguments) break;
    calls.emplace_back(name->text, grammar::to_text(*arguments));
    next = cursor.literal(",");
  }
  return calls;
}

}  // namespace octavo::openai
