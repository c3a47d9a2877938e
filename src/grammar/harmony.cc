#include "grammar/harmony.h"

#include <fmt/format.h>

#include <utility>

#include "grammar/json_value.h"

namespace octavo::grammar {

namespace {

std::string text(std::string_view value) {
  return fmt::format(R"({{"type":"const_string","value":"{}"}})", json_escape(value));
}
std::string token(std::string_view value) { return fmt::format(R"({{"type":"token","token":"{}"}})", value); }

Result<std::string> format_of(const GrammarSource& source) {
  switch (source.kind) {
    case GrammarKind::json_schema:
      return fmt::format(R"({{"type":"json_schema","json_schema":{}}})", source.text);
    case GrammarKind::json_object:
      return R"({"type":"json_schema","json_schema":{"type":"object"}})";
    case GrammarKind::regex:
      return fmt::format(R"({{"type":"regex","pattern":"{}"}})", json_escape(source.text));
    case GrammarKind::ebnf:
      return fmt::format(R"({{"type":"grammar","grammar":"{}"}})", json_escape(source.text));
    case GrammarKind::choice: {
      TRY(const Json choices, parse_json(source.text, source.field));
      std::string all;
      for (const Json& choice : choices.items) all += (all.empty() ? "" : ",") + text(choice.text);
      return fmt::format(R"({{"type":"or","elements":[{}]}})", all);
    }
    case GrammarKind::structural_tag:
      break;
  }
  TRY(const Json tag, parse_json(source.text, source.field));
  const Json* format = tag.find("format");
  if (!format)
    return invalid(source.field,
                   "structural tags of the legacy form are not supported with this model: use "
                   "{{\"type\": \"structural_tag\", \"format\": ..}}");
  return to_text(*format);
}

}  // namespace

std::string harmony_final(std::string_view format) {
  return fmt::format(R"({{"type":"sequence","elements":[{},{},{},{}]}})", token("<|channel|>"), text("final"),
                     token("<|message|>"), format);
}

std::string harmony_call(std::string_view function, std::string_view schema) {
  return fmt::format(
      R"({{"type":"sequence","elements":[{},{},{},{},{},{{"type":"json_schema","json_schema":{}}}]}})",
      token("<|channel|>"), text(fmt::format("commentary to=functions.{} ", function)),
      token("<|constrain|>"), text("json"), token("<|message|>"), schema);
}

std::string harmony_tag(std::span<const std::string> last_messages, bool preambles) {
  const std::string body = fmt::format(
      R"({{"type":"tag","begin":"","content":{{"type":"any_text"}},"end":{}}})", token("<|end|>"));
  const std::string channels = preambles ? text("analysis") + "," + text("commentary") : text("analysis");
  const std::string free = fmt::format(
      R"({{"type":"sequence","elements":[{},{{"type":"or","elements":[{}]}},{},{},{},{}]}})",
      token("<|channel|>"), channels, token("<|message|>"), body, token("<|start|>"), text("assistant"));
  return fmt::format(
      R"({{"type":"structural_tag","format":{{"type":"sequence","elements":[{{"type":"star","content":{}}},{{"type":"or","elements":[{}]}}]}}}})",
      free, fmt::join(last_messages, ","));
}

Result<GrammarSource> in_final_message(GrammarSource source) {
  TRY(const std::string format, format_of(source));
  source.kind = GrammarKind::structural_tag;
  source.text = harmony_tag({{harmony_final(format)}}, false);
  return source;
}

}  // namespace octavo::grammar
