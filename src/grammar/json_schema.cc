#include "grammar/json_schema.h"

#include "grammar/schema_keywords.h"
#include "grammar/schema_reader.h"
#include "grammar/schema_writer.h"

namespace octavo::grammar {

namespace {

// Some clients send an object of an API that contains the schema, such as {"name": .., "schema": {..}}. As a
// schema, this object would allow every value. Returns the name of the member with the schema, or "".
std::string_view wrapped_schema(const Json& document) {
  for (const auto& [name, value] : document.members)
    if (role_of(name, Dialect::draft2020) == KeywordRole::constrains) return "";
  for (const std::string_view name : {"schema", "json_schema", "parameters", "input_schema", "inputSchema"})
    if (const Json* inner = document.find(name); inner && (inner->find("type") || inner->find("properties")))
      return name;
  return "";
}

}  // namespace

Result<RuleId> add_json_schema(Grammar& grammar, std::string_view schema, const JsonOptions& options,
                               std::string_view field) {
  TRY(const Json document, parse_json(schema, field));
  SchemaReader reader(document, field, options.refuse_unknown);
  if (const std::string_view name = wrapped_schema(document); !name.empty())
    return reader.refuse(&document, "",
                         "no keyword limits the value, and '{}' contains a schema; send only the "
                         "value of '{}'",
                         name, name);
  SchemaWriter writer(grammar, reader, options);
  TRY(const RuleId root, writer.write({{&document}}));
  TRY_VOID(writer.refuse_if_empty(root));
  return root;
}

Result<Grammar> json_schema_grammar(std::string_view schema, const JsonOptions& options) {
  Grammar grammar;
  TRY(grammar.root, add_json_schema(grammar, schema, options, "json"));
  return within_limits(std::move(grammar));
}

Result<Grammar> json_object_grammar(const JsonOptions& options) {
  Grammar grammar;
  const Json document;
  SchemaReader reader(document, "json_object", options.refuse_unknown);
  grammar.root = SchemaWriter(grammar, reader, options).any_object();
  return within_limits(std::move(grammar));
}

}  // namespace octavo::grammar
