// Test cases: for each dialect, texts with tool calls and the expected result.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/openai/tool_parser.h"

namespace octavo::openai {

inline const std::shared_ptr<const KnownTools>& tools() {
  constexpr std::string_view kWeather = R"({"type": "object", "properties": {"city": {"type": "string"},
      "note": {"type": "string"}, "days": {"type": "integer"}, "n": {"type": ["integer", "array"]},
      "opts": {"type": "object"}}})";
  static const auto all = std::make_shared<const KnownTools>(
      KnownTools{{"get_weather", ToolParameters(kWeather, false)}, {"stop", {}}, {"add", {}}});
  return all;
}

inline CallPiece call(int index, std::string name, std::string arguments) {
  return {index, std::move(name), std::move(arguments)};
}

struct Form {
  std::string dialect;
  std::string text;
  std::string content;
  std::vector<CallPiece> calls;
};

inline const std::string kDeepseek = "<｜tool▁calls▁begin｜>";

inline std::vector<Form> object_forms() {
  return {
      {"hermes",
       "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln } \\\" "
       "</tool_call>\"}}\n</tool_call>\n<tool_call>{\"name\":\"stop\",\"arguments\":{}}</tool_call>\nDone.",
       "Let me see.\n\n\nDone.",
       {call(0, "get_weather", "{\"city\": \"Köln } \\\" </tool_call>\"}"), call(1, "stop", "{}")}},
      {"hermes",
       "<tool_call>{\"arguments\": {\"a\": [1, {}]}, \"name\": \"add\"}</tool_call>"
       "<tool_call>{\"type\": \"function\", \"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>"
       "<tool_call>{\"name\": \"stop\"}</tool_call>"
       "<tool_call>{\"name\": \"add\", \"parameters\": {}, \"why\": [\"}\"], \"n\": 12 }",
       "",
       {call(0, "add", "{\"a\": [1, {}]}"), call(1, "add", "{\"a\": 1}"), call(2, "stop", "{}"),
        call(3, "add", "{}")}},
      {"longcat",
       "<longcat_tool_call>{\"name\": \"stop\", \"arguments\": {\"x\": null}}</longcat_tool_call>",
       "",
       {call(0, "stop", "{\"x\": null}")}},
      {"llama3_json",
       "{\"type\": \"function\", \"name\": \"add\", \"parameters\": {\"a\": 1}}; {\"name\": \"stop\", "
       "\"parameters\": {}}",
       "",
       {call(0, "add", "{\"a\": 1}"), call(1, "stop", "{}")}},
      {"internlm",
       "Well <|action_start|><|plugin|>\n{\"name\": \"stop\", \"parameters\": {}}<|action_end|>\n",
       "Well",
       {call(0, "stop", "{}")}},
      {"mistral",
       "[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\": 1}, \"id\": \"x\"}, {\"name\": \"stop\", "
       "\"arguments\": {}}]",
       "",
       {call(0, "add", "{\"a\": 1}"), call(1, "stop", "{}")}},
      {"mistral_v11",
       "Hm.[TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]stop[ARGS]{}",
       "Hm.",
       {call(0, "add", "{\"a\": 1}"), call(1, "stop", "{}")}},
      {"nemotron_json",
       "Hm.<TOOLCALL>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"stop\", \"arguments\": "
       "{}}]</TOOLCALL>",
       "Hm.",
       {call(0, "add", "{\"a\": 1}"), call(1, "stop", "{}")}},
      {"granite",
       "<|tool_call|>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}]",
       "",
       {call(0, "add", "{\"a\": 1}")}},
      {"jamba",
       "<tool_calls>[\n  {\"name\": \"add\", \"arguments\": {\"a\": 1}},\n  {\"name\": \"stop\", "
       "\"arguments\": {}}\n]</tool_calls> end",
       "end",
       {call(0, "add", "{\"a\": 1}"), call(1, "stop", "{}")}},
      {"phi4_mini_json",
       "I use functools for that: functools[{\"name\": \"add\", \"arguments\": {\"a\": 1}}]",
       "I use functools for that:",
       {call(0, "add", "{\"a\": 1}")}},
      {"xlam",
       " [{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"stop\", \"arguments\": {}}]",
       "",
       {call(0, "add", "{\"a\": 1}"), call(1, "stop", "{}")}},
  };
}

inline std::vector<Form> python_forms() {
  return {
      {"pythonic",
       "[get_weather(city='it\\'s \"Köln\"', days=[1, -2.5], opts={'a': True, \"b\": (None,)}), stop( )]",
       "",
       {call(0, "get_weather",
             R"({"city": "it's \"Köln\"", "days": [1, -2.5], "opts": {"a": true, "b": [null]}})"),
        call(1, "stop", "{}")}},
      {"deepseek_v3",
       "Sure." + kDeepseek +
           "<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n"
           "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stop\n```json\n{}\n```<｜tool▁call▁end｜>"
           "<｜tool▁calls▁end｜>",
       "Sure.",
       {call(0, "add", "{\"a\": 1}"), call(1, "stop", "{}")}},
      {"deepseek_v31",
       kDeepseek + "<｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>"
                   "<｜tool▁call▁begin｜>stop<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "",
       {call(0, "add", "{\"a\": 1}"), call(1, "stop", "{}")}},
  };
}

inline std::vector<Form> block_forms() {
  return {
      {"qwen3_coder",
       "Look:\n<tool_call>\n<function=get_weather>\n<parameter=city>\nNew \"York\"\n</par\n\n</parameter>\n"
       "<parameter=days>\n3\n</parameter>\n<parameter=kind>\nwarm\n</parameter>\n</function>\n</tool_call>\n"
       "<tool_call>\n<function=stop>\n</function>\n</tool_call>",
       "Look:",
       {call(0, "get_weather", R"({"city": "New \"York\"\n</par\n", "days": 3, "kind": "warm"})"),
        call(1, "stop", "{}")}},
      {"seed_oss",
       "<seed:tool_call>\n<function=get_weather>\n<parameter=city>\nx</parameter>\n</function>\n</"
       "seed:tool_call>",
       "",
       {call(0, "get_weather", R"({"city": "\nx"})")}},
      {"minimax_m2",
       "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">x y</parameter>\n"
       "<parameter name=\"n\">[1, 2]</parameter>\n</invoke>\n<invoke name=\"stop\">\n</invoke>\n"
       "</minimax:tool_call>",
       "",
       {call(0, "get_weather", R"({"city": "x y", "n": [1, 2]})"), call(1, "stop", "{}")}},
      {"glm45",
       "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>x</arg_value>\n<arg_key>days</arg_key>\n"
       "<arg_value>3</arg_value>\n</tool_call>\n<tool_call>stop</tool_call>",
       "",
       {call(0, "get_weather", R"({"city": "x", "days": 3})"), call(1, "stop", "{}")}},
      {"apertus",
       "Hm. <|tools_prefix|>[{\"add\": {\"a\": [1, {}]}}, {\"stop\": {}}]<|tools_suffix|>",
       "Hm.",
       {call(0, "add", R"({"a": [1, {}]})"), call(1, "stop", "{}")}},
  };
}

inline std::vector<Form> marked_forms() {
  return {
      {"cohere_command3",
       "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"add\", \"parameters\": {\"a\": "
       "1}},\n"
       "    {\"tool_call_id\": \"1\", \"tool_name\": \"stop\", \"parameters\": {}}\n]<|END_ACTION|>",
       "",
       {call(0, "add", R"({"a": 1})"), call(1, "stop", "{}")}},
      {"minicpm5",
       "Ok. <function name=\"get_weather\"><param name=\"city\"><![CDATA[</param> ]] <x>]]></param>"
       "<param name=\"n\">3</param></function>\n<function name=\"stop\"></function>",
       "Ok.",
       {call(0, "get_weather", R"({"city": "</param> ]] <x>", "n": 3})"), call(1, "stop", "{}")}},
      {"granite-20b-fc",
       "<function_call> {\"name\": \"add\", \"arguments\": {\"a\": 1}} <function_call> {\"name\": \"stop\", "
       "\"arguments\": {}}",
       "",
       {call(0, "add", "{\"a\": 1}"), call(1, "stop", "{}")}},
      {"gigachat3",
       "Da. function call<|role_sep|>\n{\"name\": \"stop\", \"arguments\": {}}",
       "Da.",
       {call(0, "stop", "{}")}},
      {"lfm2",
       "<|tool_call_start|>[get_weather(city=\"x\"), stop()]<|tool_call_end|>Wait.",
       "Wait.",
       {call(0, "get_weather", R"({"city": "x"})"), call(1, "stop", "{}")}},
      {"olmo3",
       "Well.<function_calls>get_weather(city=\"x\", days=[1, 2])\nstop()\n</function_calls>",
       "Well.",
       {call(0, "get_weather", R"({"city": "x", "days": [1, 2]})"), call(1, "stop", "{}")}},
      {"gemma4",
       "Hm <|tool_call>call:get_weather{city:<|\"|>Köln, {\"x\"}<|\"|>,opts:{hot:true,list:[1,<|\"|>a<|\"|>],"
       "kind:warm},days:-2.5}<tool_call|><|tool_call>call:stop{}<tool_call|>",
       "Hm",
       {call(
            0, "get_weather",
            R"({"city": "Köln, {\"x\"}", "opts": {"hot": true, "list": [1, "a"], "kind": "warm"}, "days": -2.5})"),
        call(1, "stop", "{}")}},
      {"functiongemma",
       "<start_function_call>call:get_weather{city:<escape>x y<escape>}<end_function_call>",
       "",
       {call(0, "get_weather", R"({"city": "x y"})")}},
      {"kimi_k2",
       "See.<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>"
       "{\"a\": 1}<|tool_call_end|><|tool_call_begin|>functions.stop:1 <|tool_call_argument_begin|>{}"
       "<|tool_call_end|><|tool_calls_section_end|>",
       "See.",
       {{0, "add", "{\"a\": 1}", "functions.add:0"}, {1, "stop", "{}", "functions.stop:1"}}},
  };
}

inline std::vector<Form> last_forms() {
  return {
      {"openai",
       "Hm.<|start|>functions.add<|message|>{\"a\": 1}<|call|>",
       "Hm.",
       {call(0, "add", "{\"a\": 1}")}},
      {"deepseek_v32",
       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n"
       "<｜DSML｜parameter name=\"city\" string=\"true\">7</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"opts\" string=\"false\">{\"a\": [1]}</｜DSML｜parameter>\n"
       "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"stop\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       "",
       {call(0, "get_weather", R"({"city": "7", "opts": {"a": [1]}})"), call(1, "stop", "{}")}},
      {"deepseek_v4",
       "Ok.<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get_weather\">\n"
       "<｜DSML｜parameter name=\"city\" string=\"true\">7</｜DSML｜parameter>\n"
       "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
       "Ok.",
       {call(0, "get_weather", R"({"city": "7"})")}},
      {"deepseek_v41",
       "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"get_weather\">\n"
       "<｜DSML｜ parameter name=\"n\" string=\"false\">7</｜DSML｜ parameter>\n"
       "</｜DSML｜ invoke>\n<｜DSML｜ invoke name=\"stop\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>",
       "",
       {call(0, "get_weather", R"({"n": 7})"), call(1, "stop", "{}")}},
      {"step3",
       "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke "
       "name=\"get_weather\">"
       "<steptml:parameter name=\"city\">x</steptml:parameter><steptml:parameter name=\"n\">3"
       "</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
       "",
       {call(0, "get_weather", R"({"city": "x", "n": 3})")}},
      {"dots",
       "<dots_function_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">x y</parameter>\n"
       "</invoke>\n<invoke name=\"stop\">\n</invoke>\n</dots_function_call>",
       "",
       {call(0, "get_weather", R"({"city": "x y"})"), call(1, "stop", "{}")}},
      {"hy_v3",
       "Ok.<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>x</"
       "arg_value>\n"
       "</tool_call>\n<tool_call>stop<tool_sep>\n</tool_call>\n</tool_calls>",
       "Ok.",
       {call(0, "get_weather", R"({"city": "x"})"), call(1, "stop", "{}")}},
      {"plamo3",
       "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>"
       "add"
       "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
       "{\"a\": 1}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
       "<|plamo:end_tool_requests:plamo|>",
       "",
       {call(0, "add", "{\"a\": 1}")}},
      {"glm47",
       "A.<tool_call>get_weather<arg_key>city</arg_key><arg_value>x y</arg_value></tool_call>",
       "A.",
       {call(0, "get_weather", R"({"city": "x y"})")}},
  };
}

inline const std::vector<Form>& forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> all_forms = object_forms();
    for (const auto& more : {python_forms(), block_forms(), marked_forms(), last_forms()})
      all_forms.insert(all_forms.end(), more.begin(), more.end());
    return all_forms;
  }();
  return all;
}

}  // namespace octavo::openai
