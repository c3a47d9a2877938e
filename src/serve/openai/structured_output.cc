#include "serve/openai/structured_output.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/hash.h"
#include "grammar/tool_calls.h"

namespace octavo::openai {

namespace json = boost::json;
using grammar::GrammarKind;
using grammar::GrammarSource;

namespace {

// Numbers in their short form: a grammar spells constants as the schema does.
void write(const json::value& value, std::string& out) {
  if (value.is_double()) {
    out += fmt::format("{}", value.get_double());
  } else if (value.is_array()) {
    char before = '[';
    for (const json::value& item : value.get_array()) {
      out += std::exchange(before, ',');
      write(item, out);
    }
    out += before == '[' ? "[]" : "]";
  } else if (value.is_object()) {
    char before = '{';
    for (const auto& [key, item] : value.get_object()) {
      out += std::exchange(before, ',');
      out += json::serialize(json::value(key)) + ":";
      write(item, out);
    }
    out += before == '{' ? "{}" : "}";
  } else {
    out += json::serialize(value);
  }
}

std::string text_of(const json::value& value) {
  std::string text;
  write(value, text);
  return text;
}

// A schema may come as JSON or as a text that holds JSON.
std::string schema_text(const json::value& schema) {
  return schema.is_string() ? std::string(schema.get_string()) : text_of(schema);
}

StructuredOutput make_output(GrammarKind kind, std::string text, std::string field) {
  StructuredOutput output;
  output.source.kind = kind;
  output.source.text = std::move(text);
  output.field = std::move(field);
  return output;
}

Result<std::optional<StructuredOutput>> read_response_format(Fields& fields) {
  TRY(const json::object* format, fields.object("response_format"));
  if (!format) return std::nullopt;
  Fields f(*format, "response_format.");
  std::string type;
  TRY_VOID(f.text("type", type));
  if (type == "text") return std::nullopt;
  if (type == "json_object") return make_output(GrammarKind::json_object, "", "response_format");
  if (type == "structural_tag")
    return make_output(GrammarKind::structural_tag, text_of(*format), "response_format");
  if (type != "json_schema")
    return invalid("response_format.type", "must be text, json_object, json_schema or structural_tag, got {}",
                   type);
  TRY(const json::object* wrapper, f.object("json_schema"));
  if (!wrapper) return invalid("response_format.json_schema", "is missing");
  Fields w(*wrapper, "response_format.json_schema.");
  const json::value* schema = w.any("schema");
  if (!schema) return invalid("response_format.json_schema.schema", "is missing");
  return make_output(GrammarKind::json_schema, schema_text(*schema), "response_format.json_schema.schema");
}

struct Kind {
  std::string_view name;
  GrammarKind kind;
};
constexpr Kind kKinds[] = {
    {"json", GrammarKind::json_schema},        {"regex", GrammarKind::regex},
    {"choice", GrammarKind::choice},           {"grammar", GrammarKind::ebnf},
    {"json_object", GrammarKind::json_object}, {"structural_tag", GrammarKind::structural_tag}};

Result<std::string> constraint_text(Fields& f, const Kind& kind, const json::value& value) {
  switch (kind.kind) {
    case GrammarKind::json_object: {
      bool wanted = false;
      TRY_VOID(f.boolean(kind.name, wanted));
      if (!wanted) return invalid(f.full_name(kind.name), "must be true, or left out");
      return "";
    }
    case GrammarKind::choice: {
      std::vector<std::string> choices;
      TRY_VOID(f.texts(kind.name, choices));
      return text_of(value);
    }
    case GrammarKind::regex:
    case GrammarKind::ebnf: {
      std::string text;
      TRY_VOID(f.text(kind.name, text));
      return text;
    }
    case GrammarKind::json_schema:
    case GrammarKind::structural_tag:
      return schema_text(value);
  }
  return "";
}

Result<std::optional<StructuredOutput>> read_structured_outputs(Fields& fields) {
  TRY(const json::object* given, fields.object("structured_outputs"));
  if (!given) return std::nullopt;
  Fields f(*given, "structured_outputs.");
  const Kind* kind = nullptr;
  const json::value* value = nullptr;
  for (const Kind& each : kKinds) {
    const json::value* there = f.any(each.name);
    if (!there) continue;
    if (kind) return invalid("structured_outputs", "one constraint at a time, got several");
    kind = &each;
    value = there;
  }
  if (!kind)
    return invalid("structured_outputs",
                   "needs one of json, regex, choice, grammar, json_object, structural_tag");
  TRY(std::string text, constraint_text(f, *kind, *value));
  StructuredOutput output = make_output(kind->kind, std::move(text), f.full_name(kind->name));
  bool compact = false;
  TRY_VOID(f.boolean("disable_any_whitespace", compact));
  if (compact) output.source.options.whitespace = grammar::JsonOptions::Whitespace::none;
  f.accept({"disable_additional_properties"});  // listed properties admit no others in any case
  TRY_VOID(f.refuse("whitespace_pattern", "use disable_any_whitespace"));
  for (const std::string& name : f.unread()) return invalid(name, "is no field of structured_outputs");
  return output;
}

const json::object& function_of(const json::value& tool) { return tool.at("function").as_object(); }

std::string_view name_of(const json::value& tool) { return function_of(tool).at("name").as_string(); }

std::string parameters_of(const json::object& function) {
  const json::value* parameters = function.if_contains("parameters");
  return !parameters || parameters->is_null() ? "" : text_of(*parameters);
}

}  // namespace

Result<std::optional<StructuredOutput>> read_structured_output(Fields& fields) {
  for (const std::string_view name :
       {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "guided_json_object",
        "guided_decoding_backend", "guided_whitespace_pattern", "structural_tag"})
    TRY_VOID(fields.refuse(name, "use structured_outputs"));
  TRY(auto output, read_structured_outputs(fields));
  TRY(auto format, read_response_format(fields));
  if (format) return format;
  return output;
}

Result<std::optional<ForcedTool>> read_tool_choice(Fields& fields, const json::array* tools) {
  const json::value* choice = fields.any("tool_choice");
  if (!choice || *choice == "none") return std::nullopt;
  if (!tools || tools->empty()) return invalid("tool_choice", "needs tools");
  if (*choice == "auto") return std::nullopt;
  if (*choice == "required") return ForcedTool{};
  if (!choice->is_object())
    return invalid("tool_choice", "must be \"none\", \"auto\", \"required\" or name a function");
  Fields f(choice->get_object(), "tool_choice.");
  TRY(const json::object* function, f.object("function"));
  if (!function) return invalid("tool_choice.function", "is missing");
  Fields named(*function, "tool_choice.function.");
  ForcedTool forced;
  TRY_VOID(named.text("name", forced.function));
  for (const json::value& tool : *tools)
    if (name_of(tool) == forced.function) return forced;
  return invalid("tool_choice.function.name", "{} is none of the tools", forced.function);
}

Result<StructuredOutput> tool_call_output(const json::array& tools, const ForcedTool& forced, bool parallel) {
  std::vector<grammar::Tool> allowed;
  for (const json::value& tool : tools)
    if (forced.function.empty() || name_of(tool) == forced.function)
      allowed.push_back({.name = std::string(name_of(tool)), .parameters = parameters_of(function_of(tool))});
  auto schema = forced.function.empty() ? grammar::tool_list_schema(allowed, parallel)
                                        : grammar::tool_arguments_schema(allowed.front());
  if (!schema) return invalid("tools", "{}", schema.error().message);
  StructuredOutput output = make_output(GrammarKind::json_schema, *std::move(schema), "tools");
  output.source.options.whitespace = grammar::JsonOptions::Whitespace::none;
  return output;
}

json::object tool_call_json(std::string_view id, std::string_view name, std::string_view arguments) {
  json::object function;
  if (!id.empty()) function["name"] = name;
  function["arguments"] = arguments;
  if (id.empty()) return {{"function", std::move(function)}};
  return {{"id", id}, {"type", "function"}, {"function", std::move(function)}};
}

std::string new_tool_call_id() {
  return fmt::format("chatcmpl-tool-{:016x}{:016x}", secret_seed(), secret_seed());
}

json::array tool_calls_of(const std::string& text, const ForcedTool& forced) {
  if (!forced.function.empty()) return {tool_call_json(new_tool_call_id(), forced.function, text)};
  json::error_code error;
  const json::value list = json::parse(text, error);
  json::array calls;
  if (error || !list.is_array()) return calls;
  for (const json::value& call : list.get_array())
    calls.push_back(
        tool_call_json(new_tool_call_id(), call.at("name").as_string(), text_of(call.at("parameters"))));
  return calls;
}

}  // namespace octavo::openai
