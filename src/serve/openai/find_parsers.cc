#include "serve/openai/find_parsers.h"

#include <algorithm>
#include <array>

#include "serve/openai/reasoning.h"

namespace octavo::openai {
namespace {

struct ToolRow {
  std::string_view parser;
  std::array<std::string_view, 2> marks;  // the template must contain all of these texts
};

// The first row whose markers are all in the template is used. So a row must be before another row if its
// marker contains the other row's marker, or if it has that marker and one more.
constexpr ToolRow kToolRows[] = {
    {"deepseek_v41", {"｜DSML｜", " calls>"}},
    {"deepseek_v4", {"｜DSML｜", "tool_calls>"}},
    {"deepseek_v32", {"｜DSML｜", "function_calls>"}},
    {"deepseek_v3", {"<｜tool▁calls▁begin｜>", "```json"}},
    {"deepseek_v31", {"<｜tool▁calls▁begin｜>"}},
    {"kimi_k2", {"<|tool_calls_section_begin|>"}},
    {"step3", {"<steptml:invoke"}},
    {"minimax_m2", {"<minimax:tool_call>"}},
    {"seed_oss", {"<seed:tool_call>"}},
    {"dots", {"<dots_function_call>"}},
    {"plamo3", {"<|plamo:begin_tool_requests:plamo|>"}},
    {"gemma4", {"<|tool_call>call:"}},
    {"functiongemma", {"<start_function_call>"}},
    {"cohere_command3", {"<|START_ACTION|>"}},
    {"apertus", {"<|tools_prefix|>"}},
    {"lfm2", {"<|tool_call_start|>"}},
    {"internlm", {"<|action_start|>", "<|plugin|>"}},
    {"longcat", {"<longcat_tool_call>"}},
    {"minicpm5", {"<function name=\"", "<param name=\""}},
    {"gigachat3", {"function call", "<|role_sep|>"}},
    {"mistral", {"[TOOL_CALLS]"}},
    {"nemotron_json", {"<TOOLCALL>"}},
    {"phi4_mini_json", {"<|tool|>", "<|/tool|>"}},
    {"granite", {"<|tool_call|>"}},
    {"granite-20b-fc", {"<function_call>"}},
    {"hy_v3", {"<tool_sep>", "<arg_key>"}},
    {"glm47", {"</arg_key><arg_value>"}},
    {"glm45", {"<arg_key>", "<arg_value>"}},
    {"qwen3_coder", {"<tool_call>", "<function="}},
    {"olmo3", {"<function_calls>"}},
    {"jamba", {"<tool_calls>"}},
    {"hermes", {"<tool_call>"}},
    {"llama4_pythonic", {"[func_name1(params_name1=params_value1"}},
    {"llama3_json", {"{\"name\": function name, \"parameters\":"}},
};

struct ReasoningRow {
  std::string_view parser;
  std::string_view mark;
  std::string_view tool_parser = {};  // "": any tool parser
};

// The first matching row is used.
constexpr ReasoningRow kReasoningRows[] = {
    {"gemma4", "<|channel>"},
    {"mistral", "[THINK]"},
    {"seed_oss", "<seed:think>"},
    {"cohere_command3", "<|START_THINKING|>"},
    {"minimax_m3", "<mm:think>"},
    {"solar_open2", "<|think:start|>"},
    {"inkling", "<|content_thinking|>"},
    {"granite", "Here is my thought process:"},
    {"hunyuan_a13b", "</think>\\n<answer>"},
    {"hy_v3", "</think>", "hy_v3"},
    {"glm45", "</think>", "glm45"},
    {"glm47", "</think>", "glm47"},
    {"kimi_k2", "</think>", "kimi_k2"},
    {"minimax_m2", "</think>", "minimax_m2"},
    {"step3", "</think>", "step3"},
    {"deepseek_v3", "</think>", "deepseek_v31"},
    {"deepseek_v3", "</think>", "deepseek_v32"},
    {"deepseek_v4", "</think>", "deepseek_v4"},
    {"deepseek_v4", "</think>", "deepseek_v41"},
    {"qwen3", "</think>", "hermes"},
    {"qwen3", "</think>", "qwen3_coder"},
    {"deepseek_r1", "</think>"},
    {"olmo3", "</think>", "olmo3"},
};

}  // namespace

FoundParser find_tool_parser(std::string_view chat_template, const Tokenizer& tokenizer,
                             const ChatTemplate* compiled) {
  if (!own_reasoning_parser(tokenizer).empty()) return {"openai", "the tokens of gpt-oss"};
  for (const ToolRow& row : kToolRows)
    if (std::ranges::all_of(row.marks, [&](std::string_view mark) { return chat_template.contains(mark); }))
      return {row.parser, row.marks.back().empty() ? row.marks.front() : row.marks.back()};
  if (compiled && !compiled->habits().reads_tools) return {"hermes", "no tools, so the server writes them"};
  return {};
}

FoundParser find_reasoning_parser(std::string_view chat_template, const Tokenizer& tokenizer,
                                  std::string_view tool_parser) {
  if (const std::string_view own = own_reasoning_parser(tokenizer); !own.empty())
    return {own, "the tokens of gpt-oss"};
  for (const ReasoningRow& row : kReasoningRows)
    if (chat_template.contains(row.mark) && (row.tool_parser.empty() || row.tool_parser == tool_parser) &&
        reasoning_rule(row.parser, tokenizer))
      return {row.parser, row.mark};
  return {};
}

}  // namespace octavo::openai
