// Test cases: calls that mix several dialects, or that have words between marker and call.
#pragma once

#include <vector>

#include "serve/openai/tool_forms.h"

namespace octavo::openai {

inline std::vector<Form> numbers_and_words() {
  const CallPiece stop = call(0, "stop", "{}");
  const CallPiece add = call(0, "add", R"({"a": 1})");
  return {
      // The id has '.' instead of ':' before the number. Then the text is a call only if the tool is known.
      {"kimi_k2",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.add.0<|tool_call_argument_begin|>{\"a\": 1}"
       "<|tool_call_end|><|tool_calls_section_end|>",
       "",
       {{0, "add", R"({"a": 1})", "functions.add.0"}}},
      {"kimi_k2",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.nope.0<|tool_call_argument_begin|>{}"
       "<|tool_call_end|><|tool_call_begin|>functions.add:1<|tool_call_argument_begin|>{\"a\": 1}"
       "<|tool_call_end|><|tool_calls_section_end|>",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.nope.0<|tool_call_argument_begin|>{}"
       "<|tool_call_end|>",
       {{0, "add", R"({"a": 1})", "functions.add:1"}}},
      // The id names no known tool, so the parser selects the only tool that has these parameters.
      {"kimi_k2",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.nope.0<|tool_call_argument_begin|>{\"city\":"
       " "
       "\"x\"}<|tool_call_end|><|tool_call_begin|>call_9<|tool_call_argument_begin|>{\"city\": "
       "\"x\"}<|tool_call_end|><|tool_calls_section_end|>",
       "",
       {{0, "get_weather", R"({"city": "x"})", "functions.nope.0"},
        {1, "get_weather", R"({"city": "x"})", "call_9"}}},
      // The model wrote words between the marker of a list and the list.
      {"mistral", "Hm.[TOOL_CALLS] I call: [{\"name\": \"stop\", \"arguments\": {}}]", "Hm.", {stop}},
      {"mistral",
       "[TOOL_CALLS]```json\n[{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"stop\", "
       "\"arguments\": {}}]",
       "",
       {add, call(1, "stop", "{}")}},
      {"mistral", "[TOOL_CALLS] is a mark, {this} is none.", "[TOOL_CALLS] is a mark, {this} is none.", {}},
  };
}

inline std::vector<Form> objects_as_parameters() {
  const CallPiece weather = call(0, "get_weather", R"({"city": "x"})");
  const CallPiece add = call(0, "add", R"({"a": 1})");
  return {
      // The model wrote a JSON object instead of parameters.
      {"minimax_m2",
       "<minimax:tool_call><invoke name=\"get_weather\">{\"city\": \"x\", \"days\": \"5\"}</invoke>"
       "</minimax:tool_call>",
       "",
       {call(0, "get_weather", R"({"city":"x","days":5})")}},
      {"deepseek_v32",
       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n{\"city\": "
       "\"x\"}\n</｜DSML｜invoke>\n"
       "<｜DSML｜invoke name=\"add\">\n{\"a\": 1}\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       "",
       {weather, call(1, "add", R"({"a": 1})")}},
      {"qwen3_coder", "<tool_call>\n<function=add>\n{\"a\": 1}\n</function>\n</tool_call>", "", {add}},
      {"glm45", "<tool_call>add\n{\"a\": 1}</tool_call>", "", {add}},
      {"minimax_m2",
       "<minimax:tool_call><invoke name=\"add\">{\"a\": x}</invoke></minimax:tool_call>",
       "<minimax:tool_call><invoke name=\"add\">{\"a\": x}</invoke></minimax:tool_call>",
       {}},
  };
}

inline std::vector<Form> objects_of_hermes() {
  const CallPiece weather = call(0, "get_weather", R"({"city": "x"})");
  const CallPiece stop = call(0, "stop", "{}");
  const CallPiece add = call(0, "add", R"({"a": 1})");
  return {
      // The model wrote Hermes' object after the marker of another dialect.
      {"qwen3_coder",
       "Hm\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\"}}\n</tool_call>\n"
       "<tool_call>\n<function=stop>\n</function>\n</tool_call>",
       "Hm",
       {weather, call(1, "stop", "{}")}},
      {"glm45",
       "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>\n"
       "<tool_call>{\"arguments\": {}, \"name\": \"stop\"}</tool_call>",
       "",
       {add, call(1, "stop", "{}")}},
      {"minimax_m2",
       "<minimax:tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n"
       "{\"name\": \"stop\", \"arguments\": {}}\n</minimax:tool_call>",
       "",
       {add, call(1, "stop", "{}")}},
      {"mistral_v11", "[TOOL_CALLS]{\"name\": \"stop\", \"arguments\": {}}", "", {stop}},
      {"gemma4", "<|tool_call>{\"name\": \"stop\", \"arguments\": {}}<tool_call|>", "", {stop}},
      {"qwen3_coder",
       "<tool_call>\n{\"name\": \"nope\", \"arguments\": {}}\n</tool_call>",
       "<tool_call>\n{\"name\": \"nope\", \"arguments\": {}}\n</tool_call>",
       {}},
      {"hermes",
       "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n{\"name\": \"stop\", \"arguments\": "
       "{}}\n"
       "</tool_call>",
       "",
       {add, call(1, "stop", "{}")}},
      {"hermes",
       "<tool_call>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"stop\", \"arguments\": {}}]"
       "</tool_call>Done.",
       "Done.",
       {add, call(1, "stop", "{}")}},
      {"longcat",
       "<longcat_tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}},{\"name\": \"stop\", "
       "\"arguments\": {}}"
       "</longcat_tool_call>",
       "",
       {add, call(1, "stop", "{}")}},
  };
}

inline std::vector<Form> other_dialects() {
  const CallPiece weather = call(0, "get_weather", R"({"city": "x"})");
  const CallPiece stop = call(0, "stop", "{}"), stop_next = call(1, "stop", "{}");
  const CallPiece add = call(0, "add", R"({"a": 1})");
  const std::string coder = "<function=get_weather>\n<parameter=city>\nx\n</parameter>\n</function>\n";
  const std::string invoke =
      "<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">x"
      "</｜DSML｜parameter>\n</｜DSML｜invoke>\n";
  return {
      // The calls have the format of another version of the model family.
      {"mistral", "[TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]stop[ARGS]{}", "", {add, stop_next}},
      {"mistral", "[TOOL_CALLS]stop{}", "", {stop}},
      {"mistral_v11",
       "Hm.[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"stop\", \"arguments\": "
       "{}}] end",
       "Hm. end",
       {add, stop_next}},
      {"deepseek_v3",
       kDeepseek + "<｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "",
       {add}},
      {"deepseek_v31",
       kDeepseek +
           "<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n"
           "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stop\n```json\n{}\n```<｜tool▁call▁end｜>"
           "<｜tool▁calls▁end｜>",
       "",
       {add, stop_next}},
      {"deepseek_v31", "<｜tool▁call▁begin｜>stop<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "", {stop}},
      {"deepseek_v32", "<｜DSML｜tool_calls>\n" + invoke + "</｜DSML｜tool_calls>", "", {weather}},
      {"deepseek_v4", "<｜DSML｜function_calls>\n" + invoke + "</｜DSML｜function_calls>", "", {weather}},
      {"deepseek_v32", "Hm.\n" + invoke + "</｜DSML｜function_calls>", "Hm.", {weather}},
      // Qwen's newer format instead of Hermes' format.
      {"hermes", "Hm\n<tool_call>\n" + coder + "</tool_call>\nDone", "Hm\n\nDone", {weather}},
      {"hermes", coder + "</tool_call>", "", {weather}},
      {"hermes",
       "<tool_call>\n<function=nope>\n</function>\n</tool_call>",
       "<tool_call>\n<function=nope>\n</function>\n</tool_call>",
       {}},
      // The call objects are not in a list.
      {"jamba",
       "<tool_calls>{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n{\"name\": \"stop\", \"arguments\": {}}"
       "</tool_calls>",
       "",
       {add, stop_next}},
      {"phi4_mini_json", "<|tool_call|>{\"name\": \"stop\", \"arguments\": {}}<|/tool_call|>", "", {stop}},
      {"phi4_mini_json", "functools{\"name\": \"stop\", \"arguments\": {}}", "", {stop}},
      {"nemotron_json", "<TOOLCALL>{\"name\": \"stop\", \"arguments\": {}}</TOOLCALL>", "", {stop}},
      {"granite", "<tool_call>{\"name\": \"stop\", \"arguments\": \"\"}</tool_call>", "", {stop}},
      {"xlam", "<tool_call>{\"name\": \"stop\", \"arguments\": {}}</tool_call>", "", {stop}},
      // Without a reasoning parser, the reasoning is content, and the list of calls follows it.
      {"xlam",
       "<think>[1] or [2]?</think>\n\n[{\"name\": \"stop\", \"arguments\": {}}]",
       "<think>[1] or [2]?</think>",
       {stop}},
      {"pythonic", "[1] is a list.</think> [stop()]", "[1] is a list.</think>", {stop}},
  };
}

}  // namespace octavo::openai
