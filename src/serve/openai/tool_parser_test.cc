#include "serve/openai/tool_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>
#include <random>

namespace octavo::openai {
namespace {

namespace json = boost::json;

const std::shared_ptr<const KnownTools>& tools() {
  static const auto all = std::make_shared<const KnownTools>(
      KnownTools{{"get_weather", {"city", "note"}}, {"stop", {}}, {"add", {}}});
  return all;
}

ToolParser parser(std::string_view dialect, bool parallel = true) {
  return {*grammar::tool_dialect(dialect), tools(), parallel};
}

ParsedText parse_calls(ToolParser reader, std::string_view text) {
  ParsedText all = reader.push(text);
  all.append(reader.finish());
  return all;
}

ParsedText parse(std::string_view dialect, std::string_view text) {
  return parse_calls(parser(dialect), text);
}

CallPiece call(int index, std::string name, std::string arguments) {
  return {index, std::move(name), std::move(arguments)};
}

struct Form {
  std::string dialect;
  std::string text;
  std::string content;
  std::vector<CallPiece> calls;
};

const std::string kDeepseek = "<｜tool▁calls▁begin｜>";

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"hermes",
       "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln } \\\" "
       "</tool_call>\"}}\n</tool_call>\n<tool_call>{\"name\":\"stop\",\"arguments\":{}}</tool_call>\nDone.",
       "Let me see.Done.",
       {call(0, "get_weather", "{\"city\": \"Köln } \\\" </tool_call>\"}"), call(1, "stop", "{}")}},
      {"hermes",  // the name behind the arguments, arguments as a text, none, more members, no closing mark
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
      {"cohere_command3",
       "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"add\", \"parameters\": {\"a\": 1}},\n"
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
      {"openai",
       "Hm.<|start|>functions.add<|message|>{\"a\": 1}<|call|>",
       "Hm.",
       {call(0, "add", "{\"a\": 1}")}},
      {"deepseek_v32",
       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n"
       "<｜DSML｜parameter name=\"city\" string=\"true\">7</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"note\" string=\"false\">{\"a\": [1]}</｜DSML｜parameter>\n"
       "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"stop\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       "",
       {call(0, "get_weather", R"({"city": "7", "note": {"a": [1]}})"), call(1, "stop", "{}")}},
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
  return all;
}

TEST(ToolParser, ReadsEveryDialect) {
  for (const grammar::ToolDialect& dialect : grammar::tool_dialects())
    EXPECT_TRUE(std::ranges::any_of(forms(), [&](const Form& f) { return f.dialect == dialect.name; }))
        << dialect.name;
  for (const Form& form : forms()) {
    const ParsedText parsed = parse(form.dialect, form.text);
    EXPECT_EQ(parsed.content, form.content) << form.dialect;
    ASSERT_EQ(parsed.calls.size(), form.calls.size()) << form.dialect;
    for (std::size_t i = 0; i < form.calls.size(); ++i) {
      EXPECT_EQ(parsed.calls[i], form.calls[i]) << form.dialect << ": " << parsed.calls[i].arguments;
      json::error_code error;
      EXPECT_TRUE(json::parse(parsed.calls[i].arguments, error).is_object()) << form.dialect;
    }
  }
}

// White space around calls apart, which vLLM counts as content where it stands before the first one.
TEST(ToolParser, FindsWhatVllmFinds) {
  std::ifstream file("tests/data/tools/calls.json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const json::value answers = json::parse(text);
  EXPECT_GT(answers.as_array().size(), 20u);
  const auto types = std::make_shared<const KnownTools>(KnownTools{{"get_weather", {"city"}}, {"stop", {}}});
  for (const json::value& answer : answers.as_array()) {
    const std::string name(answer.at("parser").as_string());
    const ParsedText parsed =
        parse_calls({*grammar::tool_dialect(name), types, true}, answer.at("text").as_string());
    EXPECT_EQ(parsed.content, trimmed(answer.at("content").as_string())) << name;
    const json::array& calls = answer.at("calls").as_array();
    ASSERT_EQ(parsed.calls.size(), calls.size()) << name;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(parsed.calls[i].name, calls[i].at("name").as_string()) << name;
      EXPECT_EQ(json::parse(parsed.calls[i].arguments), calls[i].at("arguments")) << name;
    }
  }
}

// Joins pieces as a client does, and checks that each is what a client expects.
ParsedText in_pieces(ToolParser reader, std::string_view text, const std::vector<std::size_t>& cuts) {
  ParsedText all;
  const auto take = [&](const ParsedText& news) {
    all.content += news.content;
    int last = -1;
    for (const CallPiece& piece : news.calls) {
      EXPECT_GT(piece.index, last);
      last = piece.index;
      const bool first = piece.index == static_cast<int>(all.calls.size());
      EXPECT_EQ(piece.name.empty(), !first);
      if (first)
        all.calls.push_back(piece);
      else
        all.calls.at(static_cast<std::size_t>(piece.index)).arguments += piece.arguments;
    }
  };
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    take(reader.push(text.substr(from, cut - from)));
    from = cut;
  }
  take(reader.push(text.substr(from)));
  take(reader.finish());
  return all;
}

std::vector<std::size_t> random_cuts(std::mt19937& rng, std::size_t size) {
  std::vector<std::size_t> cuts;
  const std::size_t step = 1 + rng() % 12;
  for (std::size_t at = rng() % step; at < size; at += 1 + rng() % step) cuts.push_back(at);
  return cuts;
}

// Whole, cut off anywhere, mutated: in any pieces the same.
TEST(ToolParser, PiecesJoinToTheWhole) {
  std::mt19937 rng(1);
  for (const Form& form : forms()) {
    for (std::size_t size = 0; size <= form.text.size(); ++size) {
      const std::string_view text = std::string_view(form.text).substr(0, size);
      const ParsedText whole = parse(form.dialect, text);
      std::vector<std::size_t> every(size);
      for (std::size_t i = 0; i < size; ++i) every[i] = i;
      EXPECT_EQ(in_pieces(parser(form.dialect), text, every), whole) << form.dialect << ": " << text;
      EXPECT_EQ(in_pieces(parser(form.dialect), text, random_cuts(rng, size)), whole) << form.dialect;
    }
    for (int round = 0; round < 300; ++round) {
      std::string text = form.text;
      for (int i = 0; i < 1 + static_cast<int>(rng() % 4); ++i) {
        const std::size_t at = rng() % text.size(), size = std::min(text.size() - at, rng() % 12);
        switch (rng() % 3) {
          case 0:
            text.erase(at, size);
            break;
          case 1:
            text.insert(at, form.text.substr(rng() % form.text.size(), size));
            break;
          default:
            text[at] = "{}[]\",:<>\\ \nx"[rng() % 13];
        }
        if (text.empty()) text = " ";
      }
      const ParsedText whole = parse(form.dialect, text);
      EXPECT_EQ(in_pieces(parser(form.dialect), text, random_cuts(rng, text.size())), whole)
          << form.dialect << ": " << text;
      EXPECT_EQ(in_pieces(parser(form.dialect, false), text, random_cuts(rng, text.size())),
                parse_calls(parser(form.dialect, false), text));
    }
  }
}

TEST(ToolParser, WhatIsNoCallIsContent) {
  const auto content = [](std::string_view dialect, const std::string& text) {
    const ParsedText parsed = parse(dialect, text);
    EXPECT_TRUE(parsed.calls.empty()) << text;
    EXPECT_EQ(parsed.content, text);
  };
  for (const grammar::ToolDialect& dialect : grammar::tool_dialects())
    for (const std::string text : {"",
                                   " ",
                                   "plain\n",
                                   "<tool",
                                   "<tool_call>",
                                   "\n <tool_call> what",
                                   "[1, 2]",
                                   "[see(this)",
                                   "{}",
                                   "{\"name\": \"Bob\", \"age\": 3}",
                                   "{\"name\": \"Bob\", \"parameters\": {}}",
                                   "[{\"name\": 1}]",
                                   "<tool_call><tool_call>{\"name\": \"x",
                                   "a [TOOL_CALLS] b",
                                   "functools[0]",
                                   "[TOOL_CALLS][{\"name\": \"",
                                   "<|tool_call|>[]",
                                   "<tool_call>\n{\"name\": \"\", \"arguments\": {}}",
                                   "<tool_calls>[{}]</tool_calls>",
                                   "<tool_call>{\"name\": \"f\", \"arguments\": 7}</tool_call>",
                                   "<｜tool▁calls▁begin｜>none"}) {
      // A name alone is a call in the dialect where anything but a name is text.
      if (dialect.name.starts_with("glm") && text == "\n <tool_call> what") continue;
      content(dialect.name, text);
    }
  content("hermes", "  \n");
  content("hermes", "<tool_call>{\"x\": \"" + std::string(100'000, 'x'));
}

TEST(ToolParser, ACallBehindWhatIsNone) {
  const std::string good = "<tool_call>{\"name\": \"stop\", \"arguments\": {}}</tool_call>";
  ParsedText parsed = parse("hermes", "The mark <tool_call> <tool_call>x" + good);
  EXPECT_EQ(parsed.content, "The mark <tool_call> <tool_call>x");
  EXPECT_EQ(parsed.calls, std::vector{call(0, "stop", "{}")});
  parsed = parse("hermes", good + "\n<tool_call>{\"name\": \"st");
  EXPECT_EQ(parsed.content, "<tool_call>{\"name\": \"st");
  EXPECT_EQ(parsed.calls.size(), 1U);
  EXPECT_EQ(parse("xlam", "no [{\"name\": \"stop\", \"arguments\": {}}]").calls.size(), 0U);
}

TEST(ToolParser, StreamsArgumentsAsTheyCome) {
  ToolParser hermes = parser("hermes");
  EXPECT_EQ(hermes.push("Hi <tool").content, "Hi");
  EXPECT_EQ(hermes.push("_call>\n{\"name\": \"add\", \"argu"), ParsedText{});
  EXPECT_EQ(hermes.push("ments\": {\"a\"").calls, std::vector{call(0, "add", "{\"a\"")});
  EXPECT_EQ(hermes.push(": 1").calls, std::vector{call(0, "", ": 1")});
  EXPECT_EQ(hermes.push("}}\n</tool_call>").calls, std::vector{call(0, "", "}")});
  EXPECT_EQ(hermes.finish(), ParsedText{});
  ToolParser qwen = parser("qwen3_coder");
  qwen.push("<tool_call><function=get_weather><parameter=note>a lo");
  EXPECT_EQ(qwen.push("ng \"note\"").calls, std::vector{call(0, "", "ng \\\"note\\\"")});
}

TEST(ToolParser, OneCallWhereCallsAreNotParallel) {
  const std::string text =
      "<tool_call>{\"name\": \"stop\", \"arguments\": {}}</tool_call>"
      "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call> end";
  const ParsedText parsed = parse_calls(parser("hermes", false), text);
  EXPECT_EQ(parsed.calls, std::vector{call(0, "stop", "{}")});
  EXPECT_EQ(parsed.content, "end");
}

}  // namespace
}  // namespace octavo::openai
