// Tool definitions as what a model must write: vLLM's JSON schemas for tool_choice `required` and named, and
// the structural tag of calls in a model's own dialect.
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
  std::string parameters;  // a JSON Schema; empty: any object
  bool strict = false;     // of the arguments, where the model is free to call or not
};

enum class ToolChoice : std::uint8_t {
  free,      // text, in which calls of strict tools have valid arguments (`auto`)
  required,  // at least one call, and nothing else
};

// The structural tag (as JSON, for structural_tag_grammar) of calls of these tools, for a vocabulary with
// these special tokens. A named tool is a list of one with ToolChoice::required and without parallel calls.
// Errors name tools[i].
Result<std::string> tool_call_tag(std::span<const Tool> tools, ToolChoice choice, bool parallel,
                                  const ToolDialect& dialect, std::span<const std::string> special_tokens);

// Calls of these tools, of which strict ones have valid arguments, or in their place JSON of this schema.
Result<std::string> tool_call_or_json_tag(std::span<const Tool> tools, std::string_view schema, bool parallel,
                                          const ToolDialect& dialect,
                                          std::span<const std::string> special_tokens);

// vLLM's `required`: the JSON Schema of an array of {"name", "parameters"}. The $defs of the tools are
// joined.
Result<std::string> tool_list_schema(std::span<const Tool> tools, bool parallel);

// The string parameters: dialects of form `parameters` write their values without quotes. `schema`: JSON
// Schema of the arguments; an invalid schema gives an empty list.
std::vector<std::string> text_parameters(std::string_view schema);

// vLLM's named choice: the JSON Schema of the arguments alone.
Result<std::string> tool_arguments_schema(const Tool& tool);

}  // namespace octavo::grammar
