// Converts tool definitions to constraints: vLLM's JSON schemas for tool_choice `required` and named, and the
// structural tag of calls in a model's dialect.
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
  bool strict = false;     // arguments must match the schema, also if the model may choose whether to call
};

enum class ToolChoice : std::uint8_t {
  free,      // free text; calls of strict tools have valid arguments (`auto`)
  required,  // at least one call, and no other text
};

// The structural tag, as JSON for structural_tag_grammar(), of calls of these tools. special_tokens: those of
// the vocabulary. For a named tool, pass only this tool, ToolChoice::required, and no parallel calls. Errors
// name tools[i].
Result<std::string> tool_call_tag(std::span<const Tool> tools, ToolChoice choice, bool parallel,
                                  const ToolDialect& dialect, std::span<const std::string> special_tokens);

// Either calls of these tools (strict tools have valid arguments) or JSON of this schema.
Result<std::string> tool_call_or_json_tag(std::span<const Tool> tools, std::string_view schema, bool parallel,
                                          const ToolDialect& dialect,
                                          std::span<const std::string> special_tokens);

// The JSON Schema for vLLM's `required`: an array of {"name", "parameters"}. Merges the $defs of the tools.
Result<std::string> tool_list_schema(std::span<const Tool> tools, bool parallel);

// Names of the parameters whose type is string. Dialects of the form `parameters` write their values without
// quotes. schema: JSON Schema of the arguments; the result is empty if it is invalid.
std::vector<std::string> text_parameters(std::string_view schema);

// The JSON Schema for vLLM's named choice: only the arguments.
Result<std::string> tool_arguments_schema(const Tool& tool);

}  // namespace octavo::grammar
