// Test cases: tool calls that differ from the model's chat template, as models often write them.
#pragma once

#include <vector>

#include "serve/openai/tool_forms.h"

namespace octavo::openai {

inline const CallPiece kWeather = call(0, "get_weather", R"({"city": "x"})");
inline const CallPiece kDays = call(0, "get_weather", R"({"city": "x", "days": 5})");
inline const CallPiece kStop = call(0, "stop", "{}");
inline const CallPiece kAdd = call(0, "add", R"({"a": 1})");

inline const std::vector<Form> kHabits = {
    {"glm47",
     "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
     "",
     {kWeather}},
    {"ling3",
     "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
     "",
     {kWeather}},
    {"glm45",
     "<tool_call>get_weather<arg_key>city</arg_key><arg_value>x</arg_value></tool_call>",
     "",
     {kWeather}},
    {"qwen3_coder",
     "Hm\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n</function>\n</tool_call>",
     "Hm",
     {kWeather}},
    {"qwen3_coder",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n<parameter=days>\n5\n</parameter>\n"
     "</function>\n</tool_call>",
     "",
     {kDays}},
    {"qwen3_coder",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</function>\n</tool_call>",
     "",
     {kWeather}},
    {"qwen3_coder",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n</tool_call>",
     "",
     {kWeather}},
    {"seed_oss",
     "<function=get_weather>\n<parameter=city>x</parameter>\n</function>\n</seed:tool_call>",
     "",
     {kWeather}},
    {"minimax_m2",
     "<invoke name=\"get_weather\">\n<parameter name=\"city\">x</parameter>\n</invoke>",
     "",
     {kWeather}},
    {"granite",
     "<tool_call>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}]",
     "",
     {call(0, "add", R"({"a": 1})")}},
    {"kimi_k2",
     "<|tool_calls_section_begin|><|tool_call_begin|>add:3<|tool_call_argument_begin|>{}<|tool_call_end|>"
     "<|tool_calls_section_end|>",
     "",
     {{0, "add", "{}", "add:3"}}},
    {"kimi_k2",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.add<|tool_call_argument_begin|>{}"
     "<|tool_call_end|><|tool_calls_section_end|>",
     "",
     {call(0, "add", "{}")}},
    {"kimi_k2",
     "<|tool_call_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{}"
     "<|tool_call_end|><|tool_call_section_end|>",
     "",
     {{0, "add", "{}", "functions.add:0"}}},
    {"kimi_k2",
     "<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
     "",
     {{0, "add", "{}", "functions.add:0"}}},
    {"deepseek_v4",
     "<｜DSML｜tool_calls><｜DSML｜invoke name=\"get_weather\"><｜DSML｜parameter name=\"city\">x"
     "</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>",
     "",
     {kWeather}},
    {"minicpm5",
     "<function name=\"get_weather\"><param name=\"city\">a &lt;b&gt; &amp;&amp; &#x63; "
     "&nope;</param></function>",
     "",
     {call(0, "get_weather", R"({"city": "a <b> && c &nope;"})")}},
    // Lists of calls with and without brackets.
    {"llama3_json",
     "[{\"name\": \"add\", \"parameters\": {\"a\": 1}}, {\"name\": \"stop\", \"parameters\": {}}]",
     "",
     {kAdd, call(1, "stop", "{}")}},
    {"llama3_json",
     "{\"name\": \"add\", \"parameters\": {\"a\": 1}}, {\"name\": \"stop\", \"parameters\": {}}",
     "",
     {kAdd, call(1, "stop", "{}")}},
    {"granite", "<tool_call>[{\"name\": \"stop\", \"arguments\": {}}]</tool_call>", "", {kStop}},
    {"granite", "[{\"name\": \"stop\", \"arguments\": {}}]", "", {kStop}},
    {"granite", "<|tool_call|>{\"name\": \"stop\", \"arguments\": {}}", "", {kStop}},
    {"mistral", "[TOOL_CALLS]{\"name\": \"stop\", \"arguments\": {}}", "", {kStop}},
    {"jamba", "<tool_calls>[{\"name\": \"stop\", \"arguments\": {}}]", "", {kStop}},
    {"jamba", "<tool_calls>{\"name\": \"stop\", \"arguments\": {}}</tool_calls>", "", {kStop}},
    {"phi4_mini_json", "<|tool_call|>[{\"name\": \"stop\", \"arguments\": {}}]<|/tool_call|>", "", {kStop}},
    {"gigachat3", "function call{\"name\": \"stop\", \"arguments\": {}}", "", {kStop}},
    {"xlam", "Sure.\n```json\n[{\"name\": \"stop\", \"arguments\": {}}]\n```", "Sure.", {kStop}},
    {"xlam", "Sure.[TOOL_CALLS][{\"name\": \"stop\", \"arguments\": {}}]", "Sure.", {kStop}},
    {"xlam", "Sure.<tool_call>[{\"name\": \"stop\", \"arguments\": {}}]</tool_call>", "Sure.", {kStop}},
    {"xlam",
     "<think>[1] or [2]?</think>\n\n[{\"name\": \"stop\", \"arguments\": {}}]",
     "<think>[1] or [2]?</think>",
     {kStop}},
    {"pythonic", "[1] is a list.</think> [stop()]", "[1] is a list.</think>", {kStop}},
    {"llama4_pythonic", "<|python_start|>[stop()]<|python_end|>", "", {kStop}},
    {"pythonic", "```python\n[stop()]\n```", "", {kStop}},
    {"pythonic", "[stop(),]", "", {kStop}},
    {"pythonic", "[get_weather(city='x',)]", "", {kWeather}},
    {"lfm2", "<|tool_call_start|>stop()<|tool_call_end|>", "", {kStop}},
    {"lfm2",
     "<|tool_call_start|>[get_weather(city='say 'x' now')]<|tool_call_end|>",
     "",
     {call(0, "get_weather", R"({"city": "say 'x' now"})")}},
    {"olmo3", "<function_calls>[add(a=1), stop()]</function_calls>", "", {kAdd, call(1, "stop", "{}")}},
    {"olmo3", "<function_calls>add(a=1), stop()</function_calls>", "", {kAdd, call(1, "stop", "{}")}},
    {"mistral_v11", "[TOOL_CALLS]add{\"a\": 1}[TOOL_CALLS]stop{}", "", {kAdd, call(1, "stop", "{}")}},
    {"mistral_v11", "[TOOL_CALLS]add[CALL_ID]a1b2c3d4e[ARGS]{\"a\": 1}", "", {kAdd}},
    {"deepseek_v3",
     kDeepseek + "<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n{\"a\": "
                 "1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "",
     {kAdd}},
    {"deepseek_v31",
     kDeepseek + "<｜tool▁call▁begin｜>add<｜tool▁sep｜>\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>"
                 "<｜tool▁calls▁end｜>",
     "",
     {kAdd}},
    {"minimax_m2",
     "<minimax:tool_call><invoke name='get_weather'><parameter name='city'>x</parameter></invoke>"
     "</minimax:tool_call>",
     "",
     {kWeather}},
    {"minimax_m2",
     "<minimax:tool_call><invoke name=get_weather><parameter "
     "name=city>x</parameter></invoke></minimax:tool_call>",
     "",
     {kWeather}},
    {"minimax_m2",
     "<minimax:tool_call><invoke name=\"get_weather\"><parameter name=\"city\" "
     "type=\"string\">x</parameter>"
     "</invoke></minimax:tool_call>",
     "",
     {kWeather}},
    {"qwen3_coder",
     "<tool_call>\n<function=\"get_weather\">\n<parameter=\"city\">\nx\n</parameter>\n</function>\n</"
     "tool_call>",
     "",
     {kWeather}},
    {"minicpm5", "<functionname=\"get_weather\"><paramname=\"city\">x</param></function>", "", {kWeather}},
    {"minicpm5",
     "<function name=\"get_weather\"><param name=\"city\">a<![CDATA[<b>]]>&amp;</param></function>",
     "",
     {call(0, "get_weather", R"({"city": "a<b>&"})")}},
    // One parameter contains all parameters as an object.
    {"qwen3_coder",
     "<tool_call>\n<function=get_weather>\n<parameter=arguments>\n{\"city\": \"x\", \"days\": "
     "\"5\"}\n</parameter>\n"
     "</function>\n</tool_call>",
     "",
     {call(0, "get_weather", R"({"city":"x","days":5})")}},
    {"deepseek_v32",
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"input\" "
     "string=\"true\">"
     "{\"city\": \"x\"}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     "",
     {kWeather}},
    {"minicpm5",
     "<function name=\"get_weather\"><param name=\"properties\">{'city': 'x'}</param></function>",
     "",
     {kWeather}},
    {"glm45",
     "<tool_call>get_weather\n<arg_key>input</arg_key>\n<arg_value>{\"far\": 1}</arg_value>\n</tool_call>",
     "",
     {call(0, "get_weather", R"({"input": "{\"far\": 1}"})")}},
    {"glm45",
     "<tool_call>get_weather\n<arg_key>input</arg_key>\n<arg_value>{\"city\": 1}</arg_value>\n"
     "<arg_key>days</arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
     "",
     {call(0, "get_weather", R"({"input": "{\"city\": 1}", "days": 5})")}},
    // If a parameter is repeated, the last value is used.
    {"glm47",
     "<tool_call>get_weather<arg_key>city</arg_key><arg_value>y</arg_value><arg_key>city</arg_key>"
     "<arg_value>x</arg_value></tool_call>",
     "",
     {kWeather}},
    {"hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 0, \"a\": 1}}</tool_call>", "", {kAdd}},
    // The model wrote the index of the call instead of the tool's name.
    {"kimi_k2",
     "<|tool_call_begin|>0<|tool_call_argument_begin|>{\"city\": \"x\"}<|tool_call_end|>",
     "",
     {{0, "get_weather", R"({"city": "x"})", "0"}}},
    // The type of Gemma's bare values depends on the tool's schema.
    {"gemma4",
     "<|tool_call>call:get_weather{city:New "
     "York,note:5,days:<|\"|>5<|\"|>,opts:{hot:True,url:https://a.b/c?d=e},"
     "x:108.,}<tool_call|>",
     "",
     {call(
         0, "get_weather",
         R"({"city": "New York", "note": "5", "days": 5, "opts": {"hot": true, "url": "https://a.b/c?d=e"}, "x": 108.0})")}},
    {"gemma4", "<|tool_call>call:get_weather{\"city\":<|\"|>x<|\"|>}<tool_call|>", "", {kWeather}},
    {"gemma4",
     "<|tool_call>call:get_weather{city:}<tool_call|>",
     "",
     {call(0, "get_weather", R"({"city": ""})")}},
    {"gemma4", "<|tool_call>:call:stop{}<tool_call|>", "", {kStop}},
    {"gemma4", "Well,\ncall:stop{}", "Well,", {kStop}},
    {"gemma4", "<call>stop{}", "", {kStop}},
    {"pythonic", "[add(a=b'z'), stop()]", "[add(a=b'z')", {kStop}},
    {"pythonic", "[stop(), add(1), add(a=1)]", ", add(1)", {kStop, call(1, "add", R"({"a": 1})")}},
    {"xlam",
     "[{\"name\": \"unknown\", \"arguments\": {}}, {\"name\": \"stop\", \"arguments\": {}}]",
     "[{\"name\": \"unknown\", \"arguments\": {}}",
     {kStop}},
};

}  // namespace octavo::openai
