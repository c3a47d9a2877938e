#include "grammar/json_schema.h"

#include "grammar/schema_reader.h"
#include "grammar/schema_writer.h"

namespace octavo::grammar {

Result<RuleId> add_json_schema(Grammar& grammar, std::string_view schema, const JsonOptions& options,
                               std::string_view field) {
  TRY(const Json document, parse_json(schema, field));
  SchemaReader reader(document, field, options.refuse_unknown);
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
