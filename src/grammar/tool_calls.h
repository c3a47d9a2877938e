// Converts tool definitions to constraints for tool_choice: vLLM's JSON schemas for `required` and a named
// function, and structural tags for calls in a model's dialect.
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
  std::string parameters;  // JSON Schema of the arguments; "": any object
  // arguments must match the schema even with tool_choice `auto`
  bool strict = false;
};

enum class ToolChoice : std::uint8_t {
  // tool_choice `auto`: free text and calls; the arguments of strict tools are valid
  free,
  // tool_choice `required`: at least one call and no other text
  required,
};

// Returns a structural tag (JSON for structural_tag_grammar()). special_tokens: those of the vocabulary.
// For a named function, pass this tool alone with ToolChoice::required and parallel = false. Errors name
// tools[i].
Result<std::string> tool_call_tag(std::span<const Tool> tools, ToolChoice choice, bool parallel,
                                  const ToolDialect& dialect, std::span<const std::string> special_tokens);

// The output is either tool calls, in which strict tools have valid arguments, or JSON that matches
// `schema`.
Result<std::string> tool_call_or_json_tag(std::span<const Tool> tools, std::string_view schema, bool parallel,
                                          const ToolDialect& dialect,
                                          std::span<const std::string> special_tokens);

// JSON Schema for vLLM's `required`: an array of {"name", "parameters"}. The $defs of all tools are merged.
Result<std::string> tool_list_schema(std::span<const Tool> tools, bool parallel);

// Returns the parameters of type string; the form `parameters` writes their values without quotes. `schema`
// is the JSON Schema of the arguments. Returns an empty list if the schema is invalid.
std::vector<std::string> text_parameters(std::string_view schema);

// JSON Schema for vLLM's named function: only the arguments.
Result<std::string> tool_arguments_schema(const Tool& tool);

}  // namespace octavo::grammar
