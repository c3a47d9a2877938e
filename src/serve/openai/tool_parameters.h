// Types of a tool's parameters. In dialects of the form `parameters`, models write values without types, so
// the tool's schema decides the type of a value, as in vLLM.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/json_value.h"

namespace octavo::openai {

class ToolParameters {
 public:
  ToolParameters() = default;
  // `schema` is the JSON schema of the arguments; an invalid schema is ignored. `strict` is true if a
  // grammar constrains the values, so that the model writes strings without quotes and all other values as
  // JSON.
  ToolParameters(std::string_view schema, bool strict);

  // Returns whether the parameter is always a string. Returns `text` if the schema has no type.
  bool is_text(std::string_view name, bool text = true) const;
  // Converts the text to the parameter's value, as JSON.
  std::string value(std::string_view name, std::string_view written, bool text = true) const;
  // Converts scalars in the parameter's JSON to the schema's types if possible.
  std::string fitted(std::string_view name, std::string json) const;
  // Returns the arguments as JSON if a model wrote one object instead of single parameters. Returns "" if
  // the object has none of the schema's parameters.
  std::string unwrapped(std::string_view written) const;
  bool has(std::string_view name) const;
  bool typed(std::string_view name) const;

 private:
  // A set of JSON types, as bits.
  using Types = std::uint8_t;

  const grammar::Json* resolved(const grammar::Json& schema) const;
  const grammar::Json* listed(const grammar::Json& schema, std::string_view name, int depth) const;
  const grammar::Json* find(const grammar::Json& schema, std::string_view name) const;
  const grammar::Json* item_schema(const grammar::Json& schema, std::size_t index) const;
  bool fit(const grammar::Json& schema, grammar::Json& value, int depth) const;
  Types types_of(const grammar::Json& schema, int depth) const;
  Types types_of(std::string_view name, bool text) const;
  const std::string* choice_of(std::string_view name, std::string_view written) const;

  std::optional<grammar::Json> schema_;
  // parameters that the grammar writes as text; only for strict tools
  std::optional<std::vector<std::string>> bound_texts_;
};

// The tools of a request, by name.
using KnownTools = std::map<std::string, ToolParameters, std::less<>>;

}  // namespace octavo::openai
