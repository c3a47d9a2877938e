// Tool definitions as what a model must write: vLLM's JSON schemas for tool_choice `required` and named, and
// the structural tag of calls in a model's own dialect.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/vocabulary.h"

namespace octavo::grammar {

struct Tool {
  std::string name;        // letters, digits, _ - and .
  std::string parameters;  // a JSON Schema; empty: any object
  bool strict = false;     // of the arguments, where the model is free to call or not
};

enum class ToolChoice : std::uint8_t {
  free,      // text, in which calls of strict tools have valid arguments (`auto`)
  required,  // one call at least, and nothing else
};

// How a model writes its calls. Literal text; what of it is a special token of the vocabulary becomes that
// token.
//
//   begin  call_begin NAME name_end ARGUMENTS call_end  (separator call_begin ...)*  end
struct ToolDialect {
  std::string_view name;  // as in vLLM's --tool-call-parser
  std::string_view begin = {}, end = {};
  std::string_view call_begin = {}, name_end = {}, call_end = {}, separator = {};
  // What text without calls does not hold: the beginning of `begin`, or of `call_begin` where that is empty.
  std::string_view trigger = {};

  // Arguments as one JSON object, or as one block for each:
  //   parameter_begin NAME parameter_name_end VALUE parameter_end
  // with strings as they are and other values as JSON.
  bool json_arguments = true;
  std::string_view parameter_begin = {}, parameter_name_end = {}, parameter_end = {};
};

std::span<const ToolDialect> tool_dialects();
// By its name, or null.
const ToolDialect* tool_dialect(std::string_view name);

// The structural tag (as JSON, for structural_tag_grammar) of calls of these tools. A named tool is a list of
// one with ToolChoice::required and without parallel calls. Errors name tools[i].
Result<std::string> tool_call_tag(std::span<const Tool> tools, ToolChoice choice, bool parallel,
                                  const ToolDialect& dialect, const Vocabulary& vocabulary);

// vLLM's `required`: the JSON Schema of an array of {"name", "parameters"}. The $defs of the tools are
// joined.
Result<std::string> tool_list_schema(std::span<const Tool> tools, bool parallel);

// vLLM's named choice: the JSON Schema of the arguments alone.
Result<std::string> tool_arguments_schema(const Tool& tool);

}  // namespace octavo::grammar
