// The parameters of a tool and their types. In dialects of the form `parameters`, models write values without
// types, so the tool's schema decides the type of a value, as in vLLM.
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
  // schema: JSON schema of the arguments; an invalid schema is ignored. strict: whether a grammar constrains
  // the values. Then the model writes strings without quotes and all other values as JSON.
  ToolParameters(std::string_view schema, bool strict);

  // Returns whether the parameter is always a string. text: result if the schema has no type for the
  // parameter.
  bool is_text(std::string_view name, bool text = true) const;
  // Converts the text to the parameter's value, as JSON.
  std::string value(std::string_view name, std::string_view written, bool text = true) const;
  // Converts scalars in `json`, the parameter's value, to the types of the schema if possible.
  std::string fitted(std::string_view name, std::string json) const;
  // written: one object that a model wrote instead of single parameters. Returns it as JSON arguments, or ""
  // if it has none of the schema's parameters.
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
  // parameters that the grammar requires without quotes; nullopt: the tool is not strict
  std::optional<std::vector<std::string>> bound_texts_;
};

// The tools of a request, by name.
using KnownTools = std::map<std::string, ToolParameters, std::less<>>;

}  // namespace octavo::openai
