#include "grammar/tool_dialect.h"

#include <algorithm>
#include <utility>

namespace octavo::grammar {

namespace {

using Form = ToolDialect::Form;

using Opening = ToolDialect::Opening;

// Other dialects that the models of a dialect also write: dialects of related models, or those with the same
// beginning.
constexpr std::string_view kCoder[] = {"qwen3_coder"};
constexpr std::string_view kMistral[] = {"mistral"}, kMistralV11[] = {"mistral_v11"};
constexpr std::string_view kDeepseekV3[] = {"deepseek_v3"}, kDeepseekV31[] = {"deepseek_v31"};
constexpr std::string_view kDeepseekV32[] = {"deepseek_v32"}, kDeepseekV4[] = {"deepseek_v4"};

// Other openings (ToolDialect::Opening), for example those with which models write several calls after one
// begin text.
constexpr Opening kHermesOpenings[] = {{"<tool_call>", "<tool_call>[", "]</tool_call>"}, {"", ","}, {"", ""}};
constexpr Opening kLongcatOpenings[] = {
    {"<longcat_tool_call>", "<longcat_tool_call>[", "]</longcat_tool_call>"}, {"", ","}, {"", ""}};
// Granite models since 3.1 write <tool_call>.
constexpr Opening kGraniteOpenings[] = {{"<tool_call>", "<tool_call>[", "</tool_call>"},
                                        {"<tool_call>", "<tool_call>"},
                                        {"<|tool_call|>", "<|tool_call|>"},
                                        {"[", "["},
                                        {"", ""}};
constexpr Opening kLlamaOpenings[] = {{"[", "[", "]"}, {"", ","}};
constexpr Opening kMistralOpenings[] = {{"[TOOL_CALLS]", "[TOOL_CALLS]", "", true}, {"", ""}};
constexpr Opening kJambaOpenings[] = {{"<tool_calls>", "<tool_calls>"}, {"", ""}};
constexpr Opening kNemotronOpenings[] = {{"<TOOLCALL>", "<TOOLCALL>"}, {"", ""}};
constexpr Opening kCohereOpenings[] = {{"<|START_ACTION|>", "<|START_ACTION|>"}, {"", ""}};
constexpr Opening kGigachatOpenings[] = {{"function call", "function call"}};
constexpr Opening kPhiOpenings[] = {{"<|tool_call|>", "<|tool_call|>[", "<|/tool_call|>"},
                                    {"<|tool_call|>", "<|tool_call|>"},
                                    {"<|tool_calls|>", "<|tool_calls|>[", "<|/tool_calls|>"},
                                    {"functools{", "functools"},
                                    {"", ""}};
constexpr Opening kXlamOpenings[] = {{"```json", "```json\n[", "```"},
                                     {"```", "```\n["},
                                     {"[TOOL_CALLS]", "[TOOL_CALLS]["},
                                     {"<tool_call>", "<tool_call>[", "</tool_call>"},
                                     {"<tool_call>", "<tool_call>"}};
constexpr Opening kPythonicOpenings[] = {{"<|python_start|>", "<|python_start|>[", "<|python_end|>"},
                                         {"```python", "```python\n[", "```"}};
constexpr Opening kLfmOpenings[] = {{"<|tool_call_start|>", "<|tool_call_start|>"}};
constexpr Opening kOlmoOpenings[] = {{"<function_calls>", "<function_calls>[", "]</function_calls>"},
                                     {"", ","}};
constexpr Opening kKimiOpenings[] = {
    {"<|tool_call_section_begin|>", "<|tool_call_section_begin|><|tool_call_begin|>",
     "<|tool_call_section_end|>"},
    {"<|tool_call_begin|>", "<|tool_call_begin|>"}};
constexpr Opening kGemmaOpenings[] = {{"<|tool_call>", "<|tool_call>:call:"},
                                      {"<|tool_call>", "<|tool_call>:"},
                                      {"<call>", "<call>"},
                                      {"call:", "call:"}};
constexpr Opening kFunctionOpenings[] = {{"<function=", "<function="}};
constexpr Opening kMinimaxOpenings[] = {{"<minimax:tool_call>", "<minimax:tool_call>\n<invoke name="},
                                        {"<invoke name=", "<invoke name="}};
constexpr Opening kDotsOpenings[] = {{"<dots_function_call>", "<dots_function_call>\n<invoke name="},
                                     {"<invoke name=", "<invoke name="}};
constexpr Opening kMinicpmOpenings[] = {{"<functionname=", "<function name="}};
constexpr Opening kDeepseekOpenings[] = {{"<｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>"}};
constexpr Opening kInvokeOpenings[] = {{"<｜DSML｜invoke name=", "<｜DSML｜invoke name="}};
constexpr Opening kDsmlOpenings[] = {{"<｜DSML｜invoke name=", "<｜DSML｜invoke name="},
                                     {"<｜DSML｜toolcalls>", "<｜DSML｜toolcalls>\n<｜DSML｜invoke name=\""},
                                     {"<｜DSML｜tool>", "<｜DSML｜tool>\n<｜DSML｜invoke name=\""}};

constexpr ToolDialect kDialects[] = {
    {.name = "hermes",
     .call = {.begin = "<tool_call>\n", .end = "\n</tool_call>", .separator = "\n"},
     .trigger = "<tool_call>",
     .habits = {.openings = kHermesOpenings, .others = kCoder}},
    {.name = "longcat",
     .call = {.begin = "<longcat_tool_call>\n", .end = "\n</longcat_tool_call>", .separator = "\n"},
     .trigger = "<longcat_tool_call>",
     .habits = {.openings = kLongcatOpenings}},
    {.name = "llama3_json",
     .call = {.separator = "; "},
     .keys = {.arguments = "parameters"},
     .trigger = "{\"name\": ",
     .mark = "{",
     .habits = {.openings = kLlamaOpenings}},
    {.name = "internlm",
     .call = {.begin = "<|action_start|><|plugin|>\n", .end = "<|action_end|>", .separator = "\n"},
     .keys = {.arguments = "parameters"},
     .trigger = "<|action_start|>"},
    {.name = "mistral",
     .begin = "[TOOL_CALLS]",
     .list = true,
     .call = {.separator = ", "},
     .trigger = "[TOOL_CALLS]",
     .habits = {.openings = kMistralOpenings, .others = kMistralV11},
     .short_ids = true},
    {.name = "mistral_v11",
     .form = Form::named,
     .call = {.begin = "[TOOL_CALLS]"},
     .name_end = "[ARGS]",
     .id_mark = "[CALL_ID]",
     .trigger = "[TOOL_CALLS]",
     .habits = {.others = kMistral},
     .short_ids = true},
    {.name = "granite",
     .begin = "<|tool_call|>",
     .list = true,
     .call = {.separator = ", "},
     .trigger = "<|tool_call|>",
     .habits = {.openings = kGraniteOpenings}},
    {.name = "apertus",
     .form = Form::named,
     .begin = "<|tools_prefix|>",
     .end = "<|tools_suffix|>",
     .list = true,
     .call = {.begin = "{\"", .end = "}", .separator = ", "},
     .name_end = "\": ",
     .trigger = "<|tools_prefix|>"},
    {.name = "cohere_command3",
     .begin = "<|START_ACTION|>",
     .end = "<|END_ACTION|>",
     .list = true,
     .call = {.separator = ",\n"},
     .keys = {.id = "tool_call_id", .name = "tool_name", .arguments = "parameters"},
     .trigger = "<|START_ACTION|>",
     .habits = {.openings = kCohereOpenings}},
    {.name = "jamba",
     .begin = "<tool_calls>",
     .end = "</tool_calls>",
     .list = true,
     .call = {.separator = ", "},
     .trigger = "<tool_calls>",
     .habits = {.openings = kJambaOpenings}},
    {.name = "nemotron_json",
     .begin = "<TOOLCALL>",
     .end = "</TOOLCALL>",
     .list = true,
     .call = {.separator = ", "},
     .trigger = "<TOOLCALL>",
     .habits = {.openings = kNemotronOpenings}},
    {.name = "granite-20b-fc",
     .call = {.begin = "<function_call> ", .separator = "\n"},
     .trigger = "<function_call>"},
    {.name = "gigachat3",
     .call = {.begin = "function call<|role_sep|>\n"},
     .trigger = "function call<|role_sep|>",
     .habits = {.openings = kGigachatOpenings}},
    {.name = "lfm2",
     .form = Form::python,
     .begin = "<|tool_call_start|>",
     .end = "<|tool_call_end|>",
     .list = true,
     .nested_quotes = true,
     .trigger = "<|tool_call_start|>",
     .habits = {.openings = kLfmOpenings}},
    {.name = "olmo3",
     .form = Form::python,
     .begin = "<function_calls>",
     .end = "</function_calls>",
     .call = {.separator = "\n"},
     .trigger = "<function_calls>",
     .habits = {.openings = kOlmoOpenings}},
    {.name = "gemma4",
     .form = Form::gemma,
     .call = {.begin = "<|tool_call>call:", .end = "<tool_call|>"},
     .quote = "<|\"|>",
     .trigger = "<|tool_call>",
     .habits = {.openings = kGemmaOpenings}},
    {.name = "functiongemma",
     .form = Form::gemma,
     .call = {.begin = "<start_function_call>call:", .end = "<end_function_call>"},
     .quote = "<escape>",
     .trigger = "<start_function_call>",
     .habits = {.openings = kGemmaOpenings}},
    {.name = "kimi_k2",
     .form = Form::named,
     .begin = "<|tool_calls_section_begin|>",
     .end = "<|tool_calls_section_end|>",
     .call = {.begin = "<|tool_call_begin|>", .end = "<|tool_call_end|>"},
     .name_end = "<|tool_call_argument_begin|>",
     .numbered = true,
     .name_prefix = "functions.",
     .trigger = "<|tool_calls_section_begin|>",
     .habits = {.openings = kKimiOpenings}},
    {.name = "plamo3",
     .form = Form::named,
     .begin = "<|plamo:begin_tool_requests:plamo|>",
     .end = "<|plamo:end_tool_requests:plamo|>",
     .call = {.begin = "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
              .end = "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"},
     .name_end = "<|plamo:end_tool_name:plamo|>"
                 "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>",
     .trigger = "<|plamo:begin_tool_requests:plamo|>"},
    {.name = "openai",
     .form = Form::harmony,
     .call = {.begin = "<|start|>functions.", .end = "<|call|>"},
     .name_end = "<|message|>",
     .trigger = "<|start|>functions."},
    {.name = "phi4_mini_json",
     .begin = "functools",
     .list = true,
     .call = {.separator = ", "},
     .trigger = "functools[",
     .habits = {.openings = kPhiOpenings}},
    {.name = "xlam",
     .list = true,
     .call = {.separator = ", "},
     .mark = "[",
     .at_beginning = true,
     .habits = {.openings = kXlamOpenings}},
    {.name = "pythonic",
     .form = Form::python,
     .list = true,
     .call = {.separator = ", "},
     .mark = "[",
     .at_beginning = true,
     .habits = {.openings = kPythonicOpenings}},
    {.name = "deepseek_v3",
     .form = Form::named,
     .begin = "<｜tool▁calls▁begin｜>",
     .end = "<｜tool▁calls▁end｜>",
     .call = {.begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
              .end = "\n```<｜tool▁call▁end｜>",
              .separator = "\n"},
     .name_end = "\n```json\n",
     .trigger = "<｜tool▁calls▁begin｜>",
     .habits = {.others = kDeepseekV31}},
    {.name = "deepseek_v31",
     .form = Form::named,
     .begin = "<｜tool▁calls▁begin｜>",
     .end = "<｜tool▁calls▁end｜>",
     .call = {.begin = "<｜tool▁call▁begin｜>", .end = "<｜tool▁call▁end｜>"},
     .name_end = "<｜tool▁sep｜>",
     .trigger = "<｜tool▁calls▁begin｜>",
     .habits = {.openings = kDeepseekOpenings, .others = kDeepseekV3}},
    {.name = "deepseek_v32",
     .form = Form::parameters,
     .begin = "<｜DSML｜function_calls>\n",
     .end = "</｜DSML｜function_calls>",
     .call = {.begin = "<｜DSML｜invoke name=\"", .end = "</｜DSML｜invoke>\n"},
     .name_end = "\">\n",
     .parameter = {.begin = "<｜DSML｜parameter name=\"",
                   .name_end = "\" string=\"",
                   .end = "</｜DSML｜parameter>\n",
                   .marks_text = true},
     .trigger = "<｜DSML｜function_calls>",
     .habits = {.openings = kInvokeOpenings, .others = kDeepseekV4}},
    {.name = "deepseek_v4",
     .form = Form::parameters,
     .begin = "<｜DSML｜tool_calls>\n",
     .end = "</｜DSML｜tool_calls>",
     .call = {.begin = "<｜DSML｜invoke name=\"", .end = "</｜DSML｜invoke>\n"},
     .name_end = "\">\n",
     .parameter = {.begin = "<｜DSML｜parameter name=\"",
                   .name_end = "\" string=\"",
                   .end = "</｜DSML｜parameter>\n",
                   .marks_text = true},
     .trigger = "<｜DSML｜tool_calls>",
     .habits = {.openings = kDsmlOpenings, .others = kDeepseekV32}},
    {.name = "deepseek_v41",
     .form = Form::parameters,
     .begin = "<｜DSML｜ calls>\n",
     .end = "</｜DSML｜ calls>",
     .call = {.begin = "<｜DSML｜ invoke name=\"", .end = "</｜DSML｜ invoke>\n"},
     .name_end = "\">\n",
     .parameter = {.begin = "<｜DSML｜ parameter name=\"",
                   .name_end = "\" string=\"",
                   .end = "</｜DSML｜ parameter>\n",
                   .marks_text = true},
     .trigger = "<｜DSML｜ calls>",
     .habits = {.others = kDeepseekV4}},
    {.name = "step3",
     .form = Form::parameters,
     .begin = "<｜tool_calls_begin｜>",
     .end = "<｜tool_calls_end｜>",
     .call = {.begin = "<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"",
              .end = "</steptml:invoke><｜tool_call_end｜>"},
     .name_end = "\">",
     .parameter = {.begin = "<steptml:parameter name=\"", .name_end = "\">", .end = "</steptml:parameter>"},
     .trigger = "<｜tool_calls_begin｜>"},
    {.name = "qwen3_coder",
     .form = Form::parameters,
     .call = {.begin = "<tool_call>\n<function=", .end = "</function>\n</tool_call>", .separator = "\n"},
     .name_end = ">\n",
     .parameter = {.begin = "<parameter=", .name_end = ">\n", .end = "\n</parameter>\n"},
     .trigger = "<tool_call>",
     .habits = {.openings = kFunctionOpenings, .open_end = true}},
    {.name = "seed_oss",
     .form = Form::parameters,
     .call = {.begin = "<seed:tool_call>\n<function=",
              .end = "</function>\n</seed:tool_call>",
              .separator = "\n"},
     .name_end = ">\n",
     .parameter = {.begin = "<parameter=", .name_end = ">", .end = "</parameter>\n"},
     .trigger = "<seed:tool_call>",
     .habits = {.openings = kFunctionOpenings, .open_end = true}},
    {.name = "minimax_m2",
     .form = Form::parameters,
     .begin = "<minimax:tool_call>\n",
     .end = "</minimax:tool_call>",
     .call = {.begin = "<invoke name=\"", .end = "</invoke>\n"},
     .name_end = "\">\n",
     .parameter = {.begin = "<parameter name=\"", .name_end = "\">", .end = "</parameter>\n"},
     .trigger = "<minimax:tool_call>",
     .habits = {.openings = kMinimaxOpenings}},
    {.name = "minicpm5",
     .form = Form::parameters,
     .call = {.begin = "<function name=\"", .end = "</function>", .separator = "\n"},
     .name_end = "\">",
     .parameter = {.begin = "<param name=\"", .name_end = "\">", .end = "</param>", .xml = true},
     .trigger = "<function name=",
     .habits = {.openings = kMinicpmOpenings}},
    {.name = "dots",
     .form = Form::parameters,
     .begin = "<dots_function_call>\n",
     .end = "</dots_function_call>",
     .call = {.begin = "<invoke name=\"", .end = "</invoke>\n"},
     .name_end = "\">\n",
     .parameter = {.begin = "<parameter name=\"", .name_end = "\">", .end = "</parameter>\n"},
     .trigger = "<dots_function_call>",
     .habits = {.openings = kDotsOpenings}},
    {.name = "glm45",
     .form = Form::parameters,
     .call = {.begin = "<tool_call>", .end = "</tool_call>", .separator = "\n"},
     .name_end = "\n",
     .parameter = {.begin = "<arg_key>", .name_end = "</arg_key>\n<arg_value>", .end = "</arg_value>\n"},
     .trigger = "<tool_call>"},
    {.name = "hy_v3",
     .form = Form::parameters,
     .begin = "<tool_calls>\n",
     .end = "</tool_calls>",
     .call = {.begin = "<tool_call>", .end = "</tool_call>\n"},
     .name_end = "<tool_sep>\n",
     .parameter = {.begin = "<arg_key>", .name_end = "</arg_key>\n<arg_value>", .end = "</arg_value>\n"},
     .trigger = "<tool_calls>"},
    {.name = "glm47",
     .form = Form::parameters,
     .call = {.begin = "<tool_call>", .end = "</tool_call>"},
     .parameter = {.begin = "<arg_key>", .name_end = "</arg_key><arg_value>", .end = "</arg_value>"},
     .trigger = "<tool_call>"},
};

// Other names of vLLM's parsers, and the dialect that each one reads.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"granite4", "hermes"},          {"ernie45", "hermes"},
    {"qwen3_json", "hermes"},        {"llama4_json", "llama3_json"},
    {"hunyuan_a13b", "jamba"},       {"mimo", "qwen3_coder"},
    {"qwen3_xml", "qwen3_coder"},    {"step3p5", "qwen3_coder"},
    {"llama4_pythonic", "pythonic"}, {"ling3", "glm47"},
    {"poolside_v1", "glm45"},        {"cohere_command4", "cohere_command3"},
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
