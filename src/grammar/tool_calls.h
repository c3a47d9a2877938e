// Converts tool definitions to constraints: vLLM's JSON schemas for the tool_choice `required` and named,
// and the structural tag of calls in a model's dialect.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/tool_dialect.h"

namespace octavo::grammar {

struct Tool {
  std::string name;        // letters, digits, _ - and .
  std::string parameters;  // JSON Schema of the arguments; empty: any object
  bool strict = false;     // arguments must match the schema, even if the model may choose whether to call
};

enum class ToolChoice : std::uint8_t {
  free,      // free text; calls of strict tools have valid arguments (`auto`)
  required,  // at least one call, and no other text
};

// Returns the structural tag of calls of these tools, as JSON for structural_tag_grammar(). special_tokens:
// those of the vocabulary. For a named tool, pass only this tool, ToolChoice::required, and no parallel
// calls. Errors name tools[i].
Result<std::string> tool_call_tag(std::span<const Tool> tools, ToolChoice choice, bool parallel,
                                  const ToolDialect& dialect, std::span<const std::string> special_tokens);

// Returns the tag of either calls of these tools (strict tools have valid arguments) or JSON of this
// schema.
Result<std::string> tool_call_or_json_tag(std::span<const Tool> tools, std::string_view schema, bool parallel,
                                          const ToolDialect& dialect,
                                          std::span<const std::string> special_tokens);

// Returns the JSON Schema for vLLM's `required`: an array of {"name", "parameters"}. Merges the $defs of
// the tools.
Result<std::string> tool_list_schema(std::span<const Tool> tools, bool parallel);

// Returns the names of the parameters whose type is string, because dialects of the form `parameters` write
// their values without quotes. schema: JSON Schema of the arguments; if it is invalid, the result is empty.
std::vector<std::string> text_parameters(std::string_view schema);

// Returns the JSON Schema for vLLM's named choice: only the arguments.
Result<std::string> tool_arguments_schema(const Tool& tool);

}  // namespace octavo::grammar
