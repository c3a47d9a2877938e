// Converts tool definitions to constraints for tool_choice. The constraints are structural tags for calls in
// a model's dialect, or vLLM's JSON Schemas for `required` and for a named function.
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
  std::string name;        // consists of letters, digits, '_', '-' and '.'
  std::string parameters;  // JSON Schema of the arguments; "": any object
  // the arguments must match the schema, also with tool_choice `auto`
  bool strict = false;
};

enum class ToolChoice : std::uint8_t {
  // tool_choice `auto`: free text and calls; the arguments of strict tools are valid
  free,
  // tool_choice `required`: at least one call and no other text
  required,
};

// Returns a structural tag (JSON for structural_tag_grammar()). special_tokens: texts of the vocabulary's
// special tokens. For a named function, pass only its tool, ToolChoice::required, and parallel = false.
// Errors name tools[i].
Result<std::string> tool_call_tag(std::span<const Tool> tools, ToolChoice choice, bool parallel,
                                  const ToolDialect& dialect, std::span<const std::string> special_tokens);

// Returns a structural tag for outputs that are either tool calls (with valid arguments if the tool is
// strict) or JSON that matches `schema`.
Result<std::string> tool_call_or_json_tag(std::span<const Tool> tools, std::string_view schema, bool parallel,
                                          const ToolDialect& dialect,
                                          std::span<const std::string> special_tokens);

// Returns the JSON Schema of the output with tool_choice `required`, as in vLLM: an array of {"name",
// "parameters"}. Merges the $defs of all tools.
Result<std::string> tool_list_schema(std::span<const Tool> tools, bool parallel);

// Returns the names of the parameters of type string, which ToolDialect::Form::parameters writes without
// quotes. schema: JSON Schema of the arguments. Returns an empty list if the schema is invalid.
std::vector<std::string> text_parameters(std::string_view schema);

// Returns the JSON Schema of the output if tool_choice names a function, as in vLLM: only the arguments.
Result<std::string> tool_arguments_schema(const Tool& tool);

}  // namespace octavo::grammar
