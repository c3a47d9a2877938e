#include "grammar/tool_dialect.h"

#include <algorithm>
#include <utility>

namespace octavo::grammar {

namespace {

using Form = ToolDialect::Form;

constexpr ToolDialect kDialects[] = {
    {.name = "hermes",
     .call_begin = "<tool_call>\n",
     .call_end = "\n</tool_call>",
     .separator = "\n",
     .trigger = "<tool_call>"},
    {.name = "longcat",
     .call_begin = "<longcat_tool_call>\n",
     .call_end = "\n</longcat_tool_call>",
     .separator = "\n",
     .trigger = "<longcat_tool_call>"},
    {.name = "llama3_json", .separator = "; ", .key = "parameters", .trigger = "{\"name\": ", .mark = "{"},
    {.name = "internlm",
     .call_begin = "<|action_start|><|plugin|>\n",
     .call_end = "<|action_end|>",
     .separator = "\n",
     .key = "parameters",
     .trigger = "<|action_start|>"},
    {.name = "mistral",
     .begin = "[TOOL_CALLS]",
     .list = true,
     .separator = ", ",
     .trigger = "[TOOL_CALLS]",
     .short_ids = true},
    {.name = "mistral_v11",
     .form = Form::named,
     .call_begin = "[TOOL_CALLS]",
     .name_end = "[ARGS]",
     .trigger = "[TOOL_CALLS]",
     .short_ids = true},
    {.name = "granite",
     .begin = "<|tool_call|>",
     .list = true,
     .separator = ", ",
     .trigger = "<|tool_call|>"},
    {.name = "jamba",
     .begin = "<tool_calls>",
     .end = "</tool_calls>",
     .list = true,
     .separator = ", ",
     .trigger = "<tool_calls>"},
    {.name = "phi4_mini_json",
     .begin = "functools",
     .list = true,
     .separator = ", ",
     .trigger = "functools["},
    {.name = "xlam", .list = true, .separator = ", ", .mark = "[", .at_beginning = true},
    {.name = "pythonic",
     .form = Form::python,
     .list = true,
     .separator = ", ",
     .mark = "[",
     .at_beginning = true},
    {.name = "deepseek_v3",
     .form = Form::named,
     .begin = "<｜tool▁calls▁begin｜>",
     .end = "<｜tool▁calls▁end｜>",
     .call_begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .call_end = "\n```<｜tool▁call▁end｜>",
     .separator = "\n",
     .name_end = "\n```json\n",
     .trigger = "<｜tool▁calls▁begin｜>"},
    {.name = "deepseek_v31",
     .form = Form::named,
     .begin = "<｜tool▁calls▁begin｜>",
     .end = "<｜tool▁calls▁end｜>",
     .call_begin = "<｜tool▁call▁begin｜>",
     .call_end = "<｜tool▁call▁end｜>",
     .name_end = "<｜tool▁sep｜>",
     .trigger = "<｜tool▁calls▁begin｜>"},
    {.name = "qwen3_coder",
     .form = Form::parameters,
     .call_begin = "<tool_call>\n<function=",
     .call_end = "</function>\n</tool_call>",
     .separator = "\n",
     .name_end = ">\n",
     .parameter_begin = "<parameter=",
     .parameter_name_end = ">\n",
     .parameter_end = "\n</parameter>\n",
     .trigger = "<tool_call>"},
    {.name = "seed_oss",
     .form = Form::parameters,
     .call_begin = "<seed:tool_call>\n<function=",
     .call_end = "</function>\n</seed:tool_call>",
     .separator = "\n",
     .name_end = ">\n",
     .parameter_begin = "<parameter=",
     .parameter_name_end = ">",
     .parameter_end = "</parameter>\n",
     .trigger = "<seed:tool_call>"},
    {.name = "minimax_m2",
     .form = Form::parameters,
     .begin = "<minimax:tool_call>\n",
     .end = "</minimax:tool_call>",
     .call_begin = "<invoke name=\"",
     .call_end = "</invoke>\n",
     .name_end = "\">\n",
     .parameter_begin = "<parameter name=\"",
     .parameter_name_end = "\">",
     .parameter_end = "</parameter>\n",
     .trigger = "<minimax:tool_call>"},
    {.name = "glm45",
     .form = Form::parameters,
     .call_begin = "<tool_call>",
     .call_end = "</tool_call>",
     .separator = "\n",
     .name_end = "\n",
     .parameter_begin = "<arg_key>",
     .parameter_name_end = "</arg_key>\n<arg_value>",
     .parameter_end = "</arg_value>\n",
     .trigger = "<tool_call>"},
    {.name = "glm47",
     .form = Form::parameters,
     .call_begin = "<tool_call>",
     .call_end = "</tool_call>",
     .parameter_begin = "<arg_key>",
     .parameter_name_end = "</arg_key><arg_value>",
     .parameter_end = "</arg_value>",
     .trigger = "<tool_call>"},
};

// Parsers of vLLM that read what another one reads.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"granite4", "hermes"},    {"ernie45", "hermes"},   {"llama4_json", "llama3_json"},
    {"hunyuan_a13b", "jamba"}, {"mimo", "qwen3_coder"}, {"qwen3_xml", "qwen3_coder"},
};

}  // namespace

std::span<const ToolDialect> tool_dialects() { return kDialects; }

const ToolDialect* tool_dialect(std::string_view name) {
  for (const auto& [synonym, dialect] : kSynonyms)
    if (synonym == name) name = dialect;
  const auto found = std::ranges::find(kDialects, name, &ToolDialect::name);
  return found == std::end(kDialects) ? nullptr : found;
}

std::vector<std::string_view> tool_dialect_names() {
  std::vector<std::string_view> names;
  for (const ToolDialect& dialect : kDialects) names.push_back(dialect.name);
  for (const auto& [synonym, dialect] : kSynonyms) names.push_back(synonym);
  std::ranges::sort(names);
  return names;
}

}  // namespace octavo::grammar
