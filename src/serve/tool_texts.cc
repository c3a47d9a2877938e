#include "serve/tool_texts.h"

#include <boost/json/object.hpp>
#include <string>
#include <utility>

#include "base/exact_json.h"
#include "text/chat_template.h"

namespace octavo {
namespace {

namespace json = boost::json;

// A template writes the texts, because models know JSON as Jinja's tojson prints it.
constexpr std::string_view kTexts = R"({%- if tools -%}
# Tools

You may call these functions, listed inside <tools></tools>:
<tools>
{%- for tool in tools %}{{ '\n' + (tool | tojson) }}{% endfor %}
{{- '\n</tools>' }}

To call one, write its name and arguments as JSON:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>
{%- endif %}
{%- for message in messages %}
{%- for call in message.tool_calls %}
    {{- '\n' if not loop.first }}
    {{- '<tool_call>\n{"name": ' + (call.function.name | tojson) + ', "arguments": ' }}
    {{- call.function.arguments if call.function.arguments is string else (call.function.arguments | tojson) }}
    {{- '}\n</tool_call>' }}
{%- endfor %}
{%- endfor %})";

const ChatTemplate& text_template() {
  static const ChatTemplate compiled = ChatTemplate::compile(kTexts, {}).value();
  return compiled;
}

bool has_role(const json::value& message, std::string_view role) {
  return std::string_view(message.at("role").get_string()) == role;
}

json::value part_of(std::string text) { return json::object{{"type", "text"}, {"text", std::move(text)}}; }

// Puts the text after the content, which is a string or a list of parts.
void append(json::value& content, std::string_view text, std::string_view separator) {
  if (content.is_array()) {
    content.get_array().push_back(part_of(std::string(separator) + std::string(text)));
    return;
  }
  json::string& given = content.get_string();
  if (!given.empty()) given.append(separator);
  given.append(text);
}

void prepend(json::value& content, std::string_view text, std::string_view separator) {
  if (content.is_array())
    content.get_array().insert(content.get_array().begin(),
                               part_of(std::string(text) + std::string(separator)));
  else
    content = std::string(text) + std::string(separator) + std::string(content.get_string());
}

void define_tools(std::string_view text, bool takes_system, json::array& messages) {
  if (takes_system && has_role(messages.front(), "system"))
    return append(messages.front().at("content"), text, "\n\n");
  if (!takes_system)
    for (json::value& message : messages)
      if (has_role(message, "user")) return prepend(message.at("content"), text, "\n\n");
  json::value content = messages.front().at("content").is_array()
                            ? json::value(json::array{part_of(std::string(text))})
                            : json::value(text);
  messages.insert(messages.begin(),
                  json::object{{"role", takes_system ? "system" : "user"}, {"content", std::move(content)}});
}

// Returns the content of a tool's message with marks around it.
json::value response_of(json::value content) {
  prepend(content, "<tool_response>", "\n");
  append(content, "</tool_response>", "\n");
  return content;
}

void join(json::value& content, json::value next) {
  if (next.is_string()) return append(content, next.get_string(), "\n");
  if (content.is_string()) content = json::array{part_of(std::string(content.get_string()) + "\n")};
  for (json::value& part : next.get_array()) content.get_array().push_back(std::move(part));
}

Result<> write_calls(json::object& message) {
  const std::string alone = exact_json_text(json::array{message});
  TRY(const std::string text, text_template().render({.messages = alone}));
  append(message["content"], text, "\n");
  message.erase("tool_calls");
  return {};
}

Result<> rewrite_calls(json::array& messages) {
  json::array written;
  bool joins = false;  // whether the last message has the result of a tool
  for (json::value& message : messages) {
    json::object& fields = message.get_object();
    if (fields.contains("tool_calls")) TRY_VOID(write_calls(fields));
    const bool result = has_role(message, "tool");
    if (result) {
      fields["content"] = response_of(std::move(fields["content"]));
      fields["role"] = "user";
    }
    if (joins && has_role(message, "user")) {
      join(written.back().at("content"), std::move(fields["content"]));
    } else {
      joins = result;
      written.push_back(std::move(message));
    }
  }
  messages = std::move(written);
  return {};
}

}  // namespace

Result<> write_tools(const ToolTexts& texts, json::array& messages) {
  if (texts.calls) TRY_VOID(rewrite_calls(messages));
  if (texts.tools.empty()) return {};
  TRY(const std::string text, text_template().render({.messages = "[]", .tools = texts.tools}));
  define_tools(text, texts.takes_system, messages);
  return {};
}

}  // namespace octavo
