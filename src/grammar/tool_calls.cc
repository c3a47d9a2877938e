#include "grammar/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "grammar/harmony.h"
#include "grammar/json_value.h"

namespace octavo::grammar {

namespace {

constexpr std::string_view kField = "tools";

using Form = ToolDialect::Form;

std::string json_quoted(std::string_view text) { return fmt::format("\"{}\"", json_escape(text)); }
std::string const_string(std::string_view text) {
  return fmt::format(R"({{"type":"const_string","value":{}}})", json_quoted(text));
}
std::string token(std::string_view text) {
  return fmt::format(R"({{"type":"token","token":{}}})", json_quoted(text));
}
std::string json_schema(std::string_view schema) {
  return fmt::format(R"({{"type":"json_schema","json_schema":{}}})", schema);
}
std::string sequence(const std::vector<std::string>& elements) {
  return fmt::format(R"({{"type":"sequence","elements":[{}]}})", fmt::join(elements, ","));
}

// Adds "type": "object" if the schema has no such keyword, because arguments are always an object.
void require_object(Json& schema) {
  constexpr std::string_view kOthers[] = {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"};
  if (std::ranges::any_of(kOthers, [&](std::string_view key) { return schema.find(key) != nullptr; })) return;
  Json type;
  type.kind = Json::Kind::string;
  type.text = "object";
  schema.members.emplace_back("type", std::move(type));
}

Result<Json> parameters_of(const Tool& tool, std::size_t index) {
  const auto named = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (tool.name.empty() || !std::ranges::all_of(tool.name, named))
    return invalid(kField, "tools[{}]: the name '{}' must be letters, digits, '_', '-' and '.'", index,
                   tool.name);
  constexpr std::string_view kAnyObject = R"({"type":"object"})";
  TRY(Json schema, parse_json(tool.parameters.empty() ? kAnyObject : tool.parameters, kField));
  if (schema.is(Json::Kind::boolean) && schema.boolean) {
    TRY(schema, parse_json(kAnyObject, kField));
  }
  if (!schema.is(Json::Kind::object))
    return invalid(kField, "tools[{}]: the parameters of '{}' must be a JSON Schema object", index,
                   tool.name);
  if (const Json* type = schema.find("type"); type && type->text != "object")
    return invalid(kField, "tools[{}]: the parameters of '{}' must be of type object", index, tool.name);
  require_object(schema);
  return schema;
}

// Returns the definition in `root` that `ref` refers to.
const Json* definition(const Json& root, std::string_view ref) {
  for (const std::string_view key : {"$defs", "definitions"}) {
    const std::string prefix = fmt::format("#/{}/", key);
    const Json* all = root.find(key);
    if (all && ref.starts_with(prefix)) return all->find(ref.substr(prefix.size()));
  }
  return nullptr;
}

// Follows $ref. Returns null if a reference cannot be resolved.
const Json* resolved(const Json& root, const Json& schema) {
  constexpr int kHopsMax = 20;
  const Json* value = &schema;
  for (int hops = 0; value && value->find("$ref"); ++hops)
    value = hops < kHopsMax ? definition(root, value->find("$ref")->text) : nullptr;
  return value;
}

// Returns true if `const`, `type` or `enum` shows that the schema only allows strings.
bool is_text(const Json& schema) {
  const auto string = [](const Json& item) { return item.is(Json::Kind::string); };
  const Json *type = schema.find("type"), *choices = schema.find("enum"), *constant = schema.find("const");
  if (constant && string(*constant)) return true;
  if (type) return string(*type) && type->text == "string";
  return choices && std::ranges::all_of(choices->items, string);
}

class TagWriter {
 public:
  TagWriter(bool parallel, const ToolDialect& dialect, std::span<const std::string> special_tokens)
      : parallel_(parallel), dialect_(dialect), special_tokens_(special_tokens) {}

  Result<std::string> write(std::span<const Tool> tools, ToolChoice choice) {
    const bool free = choice == ToolChoice::free;
    if (dialect_.form == Form::harmony) return harmony(tools, free, free ? R"({"type":"any_text"})" : "");
    if (free && dialect_.trigger.empty())
      return invalid(kField, "strict tools cannot be enforced with the tool dialect '{}'", dialect_.name);
    if (opening().empty() && free) {
      // The tag contains one call, not a list of calls, because the trigger begins each call separately.
      TRY(const std::string one, one_of(tools, free, dialect_.trigger.size()));
      return in_text({one}, !parallel_);
    }
    TRY(const std::vector<std::string> parts, calls(tools, free, free ? dialect_.trigger.size() : 0));
    return free ? in_text(parts, true) : document(sequence(parts));
  }

  Result<std::string> write_or_json(std::span<const Tool> tools, std::string_view schema) {
    if (dialect_.form == Form::harmony) return harmony(tools, true, json_schema(schema));
    TRY(const std::vector<std::string> parts, calls(tools, true, 0));
    return document(fmt::format(R"({{"type":"or","elements":[{},{}]}})", sequence(parts), json_schema(schema)));
  }

 private:
  std::string opening() const { return fmt::format("{}{}", dialect_.begin, dialect_.list ? "[" : ""); }

  // Returns the formats of one or, if parallel_ is set, several calls, without their first `skip` bytes.
  Result<std::vector<std::string>> calls(std::span<const Tool> tools, bool free, std::size_t skip) const {
    std::vector<std::string> parts;
    append(parts, std::string_view(opening()).substr(skip));
    TRY(const std::string one, one_of(tools, free, 0));
    parts.push_back(one);
    if (parallel_) {
      std::vector<std::string> next;
      append(next, dialect_.call.separator);
      next.push_back(one);
      parts.push_back(fmt::format(R"({{"type":"star","content":{}}})", sequence(next)));
    }
    append(parts, fmt::format("{}{}", dialect_.list ? "]" : "", dialect_.end));
    return parts;
  }

  static std::string document(std::string_view format) {
    return fmt::format(R"({{"type":"structural_tag","format":{}}})", format);
  }

  // final: format of a final message, which is allowed instead of a call; "": only calls are allowed.
  static Result<std::string> harmony(std::span<const Tool> tools, bool free, std::string_view final) {
    std::vector<std::string> messages;
    for (std::size_t i = 0; i < tools.size(); ++i) {
      TRY(const Json schema, parameters_of(tools[i], i));
      const bool bound = !free || tools[i].strict;
      messages.push_back(harmony_call(tools[i].name, bound ? to_text(schema) : R"({"type":"object"})"));
    }
    if (!final.empty()) messages.push_back(harmony_final(final));
    return harmony_tag(messages, free);
  }

  // Returns a structural tag for free text in which the trigger is followed by `parts`. once: the text ends
  // after them.
  std::string in_text(const std::vector<std::string>& parts, bool once) const {
    const bool special = std::ranges::find(special_tokens_, dialect_.trigger) != special_tokens_.end();
    const std::string trigger = json_quoted(dialect_.trigger);
    return document(fmt::format(
        R"({{"type":"{0}triggered_tags","trigger{1}s":[{2}],"stop_after_first":{3},"tags":[{{"type":"tag","begin":{4},"content":{5},"end":""}}]}})",
        special ? "token_" : "", special ? "_token" : "", trigger, once,
        special ? token(dialect_.trigger) : trigger, sequence(parts)));
  }

  // Returns the format of a call of any tool, without its first `skip` bytes.
  Result<std::string> one_of(std::span<const Tool> tools, bool free, std::size_t skip) const {
    if (dialect_.form == Form::python || dialect_.form == Form::gemma)
      return invalid(kField, "calls cannot be enforced with the tool dialect '{}'", dialect_.name);
    const bool object = dialect_.form == Form::object;
    const std::string name_end =
        object ? fmt::format("\", \"{}\": ", dialect_.keys.arguments) : std::string(dialect_.name_end);
    const std::string call_end = fmt::format("{}{}", object ? "}" : "", dialect_.call.end);
    const std::string number = R"({"type":"regex","pattern":"[0-9]{1,4}"})";
    std::vector<std::string> calls;
    for (std::size_t i = 0; i < tools.size(); ++i) {
      TRY(const Json schema, parameters_of(tools[i], i));
      const bool bound = !free || tools[i].strict;
      std::vector<std::string> parts;
      const std::string name =
          fmt::format("{}{}", object ? fmt::format("\"{}\": \"", dialect_.keys.name) : "", tools[i].name);
      const std::string before =
          fmt::format("{}{}{}", dialect_.call.begin, dialect_.name_prefix, object ? "{" : "");
      if (!dialect_.keys.id.empty()) {
        append(parts, fmt::format("{}\"{}\": \"", before, dialect_.keys.id).substr(skip));
        parts.push_back(number);
        append(parts, fmt::format("\", {}", name));
      } else {
        append(parts, fmt::format("{}{}", before, name).substr(skip));
      }
      if (dialect_.numbered) {
        append(parts, ":");
        parts.push_back(number);
      }
      append(parts, name_end);
      std::string_view end = call_end;
      if (dialect_.form != Form::parameters) {
        parts.push_back(json_schema(bound ? to_text(schema) : R"({"type":"object"})"));
      } else if (bound) {
        TRY_VOID(append_parameters(parts, schema, i));
      } else {
        const std::string_view stop = end.substr(0, end.find('\n'));
        parts.push_back(text_until(stop));
        end.remove_prefix(stop.size());
      }
      append(parts, end);
      calls.push_back(sequence(parts));
    }
    return fmt::format(R"({{"type":"or","elements":[{}]}})", fmt::join(calls, ","));
  }

  static std::string text_until(std::string_view end) {
    return fmt::format(R"({{"type":"tag","begin":"","content":{{"type":"any_text"}},"end":{}}})",
                       json_quoted(end));
  }

  // Appends free text that ends with `end`. If `end` contains a special token, any text may precede it,
  // because text cannot contain that token.
  void append_text_until(std::vector<std::string>& parts, std::string_view end) const {
    const bool special = std::ranges::any_of(
        special_tokens_, [&](const std::string& name) { return !name.empty() && end.contains(name); });
    if (!special) return parts.push_back(text_until(end));
    parts.emplace_back(R"({"type":"any_text"})");
    append(parts, end);
  }

  // Appends literal text. Special tokens in it become token formats.
  void append(std::vector<std::string>& parts, std::string_view text) const {
    while (!text.empty()) {
      std::size_t first = text.size(), size = 0;
      for (const std::string_view name : special_tokens_) {
        const std::size_t at = name.empty() ? std::string_view::npos : text.find(name);
        if (at < first || (at == first && name.size() > size)) {
          first = at;
          size = name.size();
        }
      }
      if (first > 0) parts.push_back(const_string(text.substr(0, first)));
      if (size > 0) parts.push_back(token(text.substr(first, size)));
      text.remove_prefix(first + size);
    }
  }

  // Writes arguments as blocks, in the order of `properties`.
  Result<void> append_parameters(std::vector<std::string>& parts, const Json& schema,
                                 std::size_t tool) const {
    static constexpr std::string_view kKnown[] = {
        "type",        "properties",  "required", "additionalProperties",
        "$defs",       "definitions", "$schema",  "title",
        "description", "default",     "examples"};
    for (const auto& [key, value] : schema.members)
      if (std::ranges::find(kKnown, key) == std::end(kKnown))
        return invalid(kField,
                       "tools[{}]: '{}' of the parameters is not supported with the tool dialect '{}'", tool,
                       key, dialect_.name);
    std::vector<std::string_view> required;
    if (const Json* names = schema.find("required"))
      for (const Json& name : names->items) required.push_back(name.text);
    std::size_t found = 0;
    const Json* properties = schema.find("properties");
    for (const auto& [name, property] : (properties ? *properties : Json()).members) {
      std::vector<std::string> block;
      append(block, fmt::format("{}{}{}", dialect_.parameter.begin, name, dialect_.parameter.name_end));
      TRY_VOID(append_value(block, schema, name, property, tool));
      const bool must = std::ranges::find(required, name) != required.end();
      found += must;
      parts.push_back(must ? sequence(block)
                           : fmt::format(R"({{"type":"optional","content":{}}})", sequence(block)));
    }
    if (found < required.size())
      return invalid(
          kField, "tools[{}]: 'required' of the parameters names a property that 'properties' lacks", tool);
    return {};
  }

  Result<void> append_value(std::vector<std::string>& block, const Json& root, const std::string& name,
                            const Json& property, std::size_t tool) const {
    const auto refuse = [&](std::string_view why) {
      return invalid(kField, "tools[{}]: the parameter '{}' {} with the tool dialect '{}'", tool, name, why,
                     dialect_.name);
    };
    if (!refs_are_definitions(property))
      return refuse("has a $ref that does not refer to $defs, which is not supported");
    const Json* value = resolved(root, property);
    if (!value) return refuse("has a $ref to a definition that does not exist");
    if (dialect_.parameter.marks_text) append(block, is_text(*value) ? "true\">" : "false\">");
    if (!is_text(*value)) {
      Json with_definitions = property;
      for (const std::string_view key : {"$defs", "definitions"})
        if (const Json* definitions = root.find(key);
            definitions && property.is(Json::Kind::object) && !property.find(key))
          with_definitions.members.emplace_back(key, *definitions);
      block.push_back(json_schema(to_text(with_definitions)));
      append(block, dialect_.parameter.end);
      return {};
    }
    const Json *choices = value->find("enum"), *constant = value->find("const");
    // For a string without quotes, only these keywords can be enforced or ignored.
    static constexpr std::string_view kLoose[] = {"type",    "enum",     "const",      "title",
                                                  "default", "examples", "deprecated", "description"};
    for (const auto& [key, ignored] : value->members)
      if (std::ranges::find(kLoose, key) == std::end(kLoose))
        return refuse(fmt::format("is a string with '{}', which cannot be enforced", key));
    std::vector<std::string> texts;
    if (choices)
      for (const Json& item : choices->items)
        if (item.is(Json::Kind::string) && (!constant || item.text == constant->text))
          texts.push_back(const_string(item.text));
    if (!choices && constant) texts.push_back(const_string(constant->text));
    if (!choices && !constant) {
      append_text_until(block, dialect_.parameter.end);
      return {};
    }
    if (texts.empty()) return refuse("has no value");
    block.push_back(fmt::format(R"({{"type":"or","elements":[{}]}})", fmt::join(texts, ",")));
    append(block, dialect_.parameter.end);
    return {};
  }

  static bool refs_are_definitions(const Json& schema) {
    if (const Json* ref = schema.find("$ref");
        ref && !ref->text.starts_with("#/$defs/") && !ref->text.starts_with("#/definitions/"))
      return false;
    const auto fine = [](const Json& child) { return refs_are_definitions(child); };
    return std::ranges::all_of(schema.items, fine) &&
           std::ranges::all_of(schema.members, [&](const auto& member) { return fine(member.second); });
  }

  const bool parallel_;
  const ToolDialect& dialect_;
  std::span<const std::string> special_tokens_;
};

Result<void> not_empty(std::span<const Tool> tools) {
  if (tools.empty()) return invalid(kField, "the list of tools is empty");
  return {};
}

}  // namespace

std::vector<std::string> text_parameters(std::string_view schema) {
  std::vector<std::string> names;
  const auto root = parse_json(schema, kField);
  if (!root) return names;
  const Json* properties = root->find("properties");
  for (const auto& [name, property] : (properties ? *properties : Json()).members)
    if (const Json* value = resolved(*root, property); value && is_text(*value)) names.push_back(name);
  return names;
}

Result<std::string> tool_call_tag(std::span<const Tool> tools, ToolChoice choice, bool parallel,
                                  const ToolDialect& dialect, std::span<const std::string> special_tokens) {
  TRY_VOID(not_empty(tools));
  return TagWriter(parallel, dialect, special_tokens).write(tools, choice);
}

Result<std::string> tool_call_or_json_tag(std::span<const Tool> tools, std::string_view schema, bool parallel,
                                          const ToolDialect& dialect,
                                          std::span<const std::string> special_tokens) {
  TRY_VOID(not_empty(tools));
  return TagWriter(parallel, dialect, special_tokens).write_or_json(tools, schema);
}

Result<std::string> tool_list_schema(std::span<const Tool> tools, bool parallel) {
  TRY_VOID(not_empty(tools));
  std::vector<std::string> calls;
  std::vector<std::pair<std::string, Json>> definitions[2];
  constexpr std::string_view kKeys[] = {"$defs", "definitions"};
  for (std::size_t i = 0; i < tools.size(); ++i) {
    TRY(Json schema, parameters_of(tools[i], i));
    // References begin at the root, which is now the schema of the list. So the definitions of all tools are
    // moved there.
    for (int k = 0; k < 2; ++k) {
      const auto at = std::ranges::find(schema.members, kKeys[k], &std::pair<std::string, Json>::first);
      if (at == schema.members.end()) continue;
      for (auto& [name, definition] : at->second.members) {
        const auto same = std::ranges::find(definitions[k], name, &std::pair<std::string, Json>::first);
        if (same == definitions[k].end())
          definitions[k].emplace_back(name, std::move(definition));
        else if (to_text(same->second) != to_text(definition))
          return invalid(kField, "tools[{}]: the definition '{}' differs from that of another tool", i, name);
      }
      schema.members.erase(at);
    }
    calls.push_back(fmt::format(
        R"({{"type":"object","properties":{{"name":{{"enum":[{}]}},"parameters":{}}},"required":["name","parameters"],"additionalProperties":false}})",
        json_quoted(tools[i].name), to_text(schema)));
  }
  std::string out = fmt::format(R"({{"type":"array","minItems":1{},"items":{{"anyOf":[{}]}})",
                                parallel ? "" : R"(,"maxItems":1)", fmt::join(calls, ","));
  for (int k = 0; k < 2; ++k) {
    if (definitions[k].empty()) continue;
    Json all;
    all.kind = Json::Kind::object;
    all.members = std::move(definitions[k]);
    out += fmt::format(",{}:{}", json_quoted(kKeys[k]), to_text(all));
  }
  return out + "}";
}

Result<std::string> tool_arguments_schema(const Tool& tool) {
  TRY(const Json schema, parameters_of(tool, 0));
  return to_text(schema);
}

}  // namespace octavo::grammar
