#include "serve/openai/structured_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace octavo::openai {

namespace json = boost::json;
using grammar::GrammarKind;
using grammar::GrammarSource;

namespace {

// Returns the text of a schema, which is a JSON object or a string that contains JSON.
std::string schema_text(const json::value& schema) {
  return schema.is_string() ? std::string(schema.get_string()) : exact_json_text(schema);
}

GrammarSource make_source(GrammarKind kind, std::string text, std::string field) {
  return {.kind = kind, .text = std::move(text), .field = std::move(field)};
}

void report_unread(const Fields& fields, std::vector<std::string>& unknown) {
  for (std::string& name : fields.unread()) unknown.push_back(std::move(name));
}

Result<std::optional<GrammarSource>> read_response_format(Fields& fields, std::vector<std::string>& unknown) {
  TRY(const json::object* format, fields.object("response_format"));
  if (!format) return std::nullopt;
  Fields f(*format, "response_format.");
  std::string type;
  TRY_VOID(f.text("type", type));
  if (type == "structural_tag")
    return make_source(GrammarKind::structural_tag, exact_json_text(*format), "response_format");
  if (type == "text" || type == "json_object") {
    // In OpenAI's API, json_object has no schema, but some servers accept one.
    const json::value* schema = type == "json_object" ? f.any("schema") : nullptr;
    report_unread(f, unknown);
    if (type == "text") return std::nullopt;
    if (!schema) return make_source(GrammarKind::json_object, "", "response_format");
    return make_source(GrammarKind::json_schema, schema_text(*schema), "response_format.schema");
  }
  if (type != "json_schema")
    return invalid("response_format.type", "must be text, json_object, json_schema or structural_tag, got {}",
                   type);
  TRY(const json::object* wrapper, f.object("json_schema"));
  if (!wrapper) return invalid("response_format.json_schema", "is missing");
  Fields w(*wrapper, "response_format.json_schema.");
  const json::value* schema = w.any("schema");
  if (!schema) return invalid("response_format.json_schema.schema", "is missing");
  w.accept({"name", "description", "strict"});
  report_unread(f, unknown);
  report_unread(w, unknown);
  return make_source(GrammarKind::json_schema, schema_text(*schema), "response_format.json_schema.schema");
}

// Constraints with old names of vLLM or names of other servers. They are refused, because if they were
// ignored, the output would be free text.
struct Foreign {
  std::string_view name, instead;
};
constexpr Foreign kForeign[] = {{"guided_json", "use structured_outputs"},
                                {"guided_regex", "use structured_outputs"},
                                {"guided_choice", "use structured_outputs"},
                                {"guided_grammar", "use structured_outputs"},
                                {"guided_json_object", "use structured_outputs"},
                                {"guided_decoding_backend", "use structured_outputs"},
                                {"guided_whitespace_pattern", "use structured_outputs"},
                                {"structural_tag", "use structured_outputs"},
                                {"regex", "use structured_outputs.regex"},
                                {"ebnf", "use structured_outputs.grammar"},
                                {"grammar", "use structured_outputs.grammar"},
                                {"json_schema", "use response_format or structured_outputs.json"},
                                {"format", "use response_format or structured_outputs.json"},
                                {"stop_regex", "use stop"}};

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
      if (!wanted) return invalid(f.full_name(kind.name), "must be true or absent");
      return "";
    }
    case GrammarKind::choice: {
      std::vector<std::string> choices;
      TRY_VOID(f.texts(kind.name, choices));
      return exact_json_text(value);
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

Result<std::optional<GrammarSource>> read_structured_outputs(Fields& fields,
                                                             const grammar::JsonOptions& options) {
  TRY(const json::object* given, fields.object("structured_outputs"));
  if (!given) return std::nullopt;
  Fields f(*given, "structured_outputs.");
  const Kind* kind = nullptr;
  const json::value* value = nullptr;
  for (const Kind& each : kKinds) {
    const json::value* given_value = f.any(each.name);
    if (!given_value) continue;
    if (kind) return invalid("structured_outputs", "must have exactly one constraint, got several");
    kind = &each;
    value = given_value;
  }
  if (!kind)
    return invalid("structured_outputs",
                   "must have one of json, regex, choice, grammar, json_object, structural_tag");
  TRY(std::string text, constraint_text(f, *kind, *value));
  GrammarSource source = make_source(kind->kind, std::move(text), f.full_name(kind->name));
  source.options = options;
  bool compact = options.whitespace == grammar::JsonOptions::Whitespace::none;
  TRY_VOID(f.boolean("disable_any_whitespace", compact));
  source.options.whitespace =
      compact ? grammar::JsonOptions::Whitespace::none : grammar::JsonOptions::Whitespace::bounded;
  // has no effect: objects with listed properties never have additional ones
  f.accept({"disable_additional_properties"});
  TRY_VOID(f.refuse("whitespace_pattern", "use disable_any_whitespace"));
  for (const std::string& name : f.unread()) return invalid(name, "is not a field of structured_outputs");
  return source;
}

}  // namespace

bool is_constraint(std::string_view field) {
  return field == "structured_outputs" || field == "response_format" ||
         std::ranges::find(kForeign, field, &Foreign::name) != std::end(kForeign);
}

Result<std::optional<GrammarSource>> read_structured_output(Fields& fields, const grammar::JsonOptions& options,
                                                            std::vector<std::string>& unknown) {
  for (const auto& [name, instead] : kForeign) TRY_VOID(fields.refuse(name, instead, ""));
  TRY(auto output, read_structured_outputs(fields, options));
  TRY(auto format, read_response_format(fields, unknown));
  if (!format) return output;
  if (output)
    return invalid("structured_outputs", "cannot be combined with {}: send only one of the two",
                   format->field);
  format->options = options;
  return format;
}

}  // namespace octavo::openai
