#include "serve/openai/tool_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>
#include <random>

#include "serve/openai/tool_choice.h"
#include "serve/openai/tool_forms.h"
#include "serve/openai/tool_habits.h"
#include "serve/openai/tool_mixtures.h"
#include "serve/test_tokenizer.h"

namespace octavo::openai {
namespace {

namespace json = boost::json;

ToolParser parser(std::string_view dialect, bool parallel = true) {
  return {*grammar::tool_dialect(dialect), tools(), parallel};
}

ParsedText parse_calls(ToolParser reader, std::string_view text) {
  ParsedText all = reader.push(text);
  all.append(reader.finish());
  return all;
}

// Returns the calls without their positions in the content.
std::vector<CallPiece> calls_of(ParsedText parsed) {
  for (CallPiece& piece : parsed.calls) piece.at = 0;
  return std::move(parsed.calls);
}

ParsedText parse(std::string_view dialect, std::string_view text) {
  return parse_calls(parser(dialect), text);
}

TEST(ToolParser, ReadsEveryDialect) {
  for (const grammar::ToolDialect& dialect : grammar::tool_dialects())
    EXPECT_TRUE(std::ranges::any_of(forms(), [&](const Form& f) { return f.dialect == dialect.name; }))
        << dialect.name;
  for (const Form& form : forms()) {
    const ParsedText parsed = parse(form.dialect, form.text);
    EXPECT_EQ(parsed.content, form.content) << form.dialect;
    EXPECT_EQ(calls_of(parsed), form.calls) << form.dialect;
    for (const CallPiece& called : parsed.calls) {
      boost::system::error_code error;
      EXPECT_TRUE(json::parse(called.arguments, error).is_object()) << form.dialect;
    }
  }
}

TEST(ToolParser, CallsOfOtherToolsCanBeContent) {
  const std::string text = "<tool_call>{\"name\": \"nope\", \"arguments\": {}}</tool_call>";
  const auto read = [&](bool known_only) {
    return parse_calls({*grammar::tool_dialect("hermes"), tools(), true, CallPolicy::stream, known_only},
                       text);
  };
  EXPECT_EQ(read(true), (ParsedText{.content = text, .calls = {}}));
  EXPECT_EQ(read(false), (ParsedText{.content = "", .calls = {call(0, "nope", "{}")}}));
}

// The parser must find the same calls as vLLM. The test ignores white space around calls, because vLLM adds
// the white space before the first call to the content.
TEST(ToolParser, FindsWhatVllmFinds) {
  std::ifstream file("tests/data/tools/calls.json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const json::value answers = json::parse(text);
  EXPECT_GT(answers.as_array().size(), 20u);
  for (const json::value& answer : answers.as_array()) {
    const std::string name(answer.at("parser").as_string());
    const ParsedText parsed =
        parse_calls({*grammar::tool_dialect(name), tools(), true}, answer.at("text").as_string());
    EXPECT_EQ(parsed.content, trimmed(answer.at("content").as_string())) << name;
    const json::array& calls = answer.at("calls").as_array();
    ASSERT_EQ(parsed.calls.size(), calls.size()) << name;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(parsed.calls[i].name, calls[i].at("name").as_string()) << name;
      EXPECT_EQ(json::parse(parsed.calls[i].arguments), calls[i].at("arguments")) << name;
    }
  }
}

// Joins pieces as a client does, and checks each piece.
ParsedText in_pieces(ToolParser reader, std::string_view text, const std::vector<std::size_t>& cuts) {
  ParsedText all;
  const auto take = [&](const ParsedText& news) {
    const std::size_t before = all.content.size();
    all.content += news.content;
    int last = -1;
    for (const CallPiece& piece : news.calls) {
      EXPECT_GT(piece.index, last);
      last = piece.index;
      const bool first = piece.index == static_cast<int>(all.calls.size());
      EXPECT_EQ(piece.name.empty(), !first);
      if (first) {
        all.calls.push_back(piece);
        all.calls.back().at += before;
      } else {
        all.calls.at(static_cast<std::size_t>(piece.index)).arguments += piece.arguments;
      }
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

// For complete, shortened and mutated texts, the result must not depend on the pieces.
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
      content(dialect.name, text);
    }
  content("hermes", "  \n");
  content("hermes", "<tool_call>{\"x\": \"" + std::string(100'000, 'x'));
}

TEST(ToolParser, ACallBehindWhatIsNone) {
  const std::string good = "<tool_call>{\"name\": \"stop\", \"arguments\": {}}</tool_call>";
  ParsedText parsed = parse("hermes", "The mark <tool_call> <tool_call>x" + good);
  EXPECT_EQ(parsed.content, "The mark <tool_call> <tool_call>x");
  EXPECT_EQ(calls_of(parsed), std::vector{call(0, "stop", "{}")});
  EXPECT_EQ(parsed.calls.front().at, parsed.content.size());
  parsed = parse("hermes", good + " and" + good + " more");
  EXPECT_EQ(parsed.content, "and more");
  EXPECT_EQ(parsed.calls.at(1).at, 3U);
  parsed = parse("hermes", good + "\n<tool_call>{\"name\": \"st");
  EXPECT_EQ(parsed.content, "<tool_call>{\"name\": \"st");
  EXPECT_EQ(parsed.calls.size(), 1U);
  EXPECT_EQ(parse("xlam", "no [{\"name\": \"stop\", \"arguments\": {}}]").calls.size(), 0U);
}

TEST(ToolParser, WhiteSpaceStaysBetweenTwoTexts) {
  const std::string good = "<tool_call>{\"name\": \"stop\", \"arguments\": {}}</tool_call>";
  const auto content = [](const std::string& text) {
    const ParsedText parsed = parse("hermes", text);
    std::vector<std::size_t> every(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) every[i] = i;
    EXPECT_EQ(in_pieces(parser("hermes"), text, every), parsed) << text;
    return parsed.content;
  };
  EXPECT_EQ(content("One.\n" + good + "\nTwo.\n"), "One.\n\nTwo.\n");
  EXPECT_EQ(content("One.\n" + good + "\n" + good + " Two."), "One.\n\n Two.");
  EXPECT_EQ(content("One." + good + " <tool"), "One. <tool");
  EXPECT_EQ(content("One.\n" + good + "\n"), "One.");
  EXPECT_EQ(content("\n" + good + "\nTwo."), "Two.");
}

TEST(ToolParser, SendsShortCallsWholeAndLongOnesAsTheyCome) {
  ToolParser hermes = parser("hermes");
  EXPECT_EQ(hermes.push("Hi <tool").content, "Hi");
  EXPECT_EQ(hermes.push("_call>\n{\"name\": \"add\", \"arguments\": {\"a\""), ParsedText{});
  EXPECT_EQ(hermes.push(": 1}}\n</tool_call>").calls, std::vector{call(0, "add", "{\"a\": 1}")});
  EXPECT_EQ(hermes.finish(), ParsedText{});
  const std::string note(2000, 'n');
  ToolParser longer = parser("hermes");
  EXPECT_EQ(longer.push("<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \"" + note).calls,
            std::vector{call(0, "add", "{\"a\": \"" + note)});
  EXPECT_EQ(longer.push("x\"}").calls, std::vector{call(0, "", "x\"}")});
  ToolParser qwen = parser("qwen3_coder");
  EXPECT_EQ(qwen.push("<tool_call><function=get_weather><parameter=note>" + note).calls.size(), 1U);
  EXPECT_EQ(qwen.push("ng \"note\"").calls, std::vector{call(0, "", "ng \\\"note\\\"")});
  ToolParser whole(*grammar::tool_dialect("hermes"), tools(), true, CallPolicy::whole);
  const std::string cut = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \"" + note;
  EXPECT_EQ(parse_calls({*grammar::tool_dialect("hermes"), tools(), true, CallPolicy::whole}, cut),
            (ParsedText{.content = cut}));
}

TEST(ToolParser, ReadsHabits) {
  std::mt19937 rng(2);
  std::vector<Form> all = kHabits;
  for (const auto& more :
       {numbers_and_words(), objects_as_parameters(), objects_of_hermes(), other_dialects()})
    all.insert(all.end(), more.begin(), more.end());
  for (const Form& habit : all) {
    const ParsedText parsed = parse(habit.dialect, habit.text);
    EXPECT_EQ(parsed.content, habit.content) << habit.text;
    EXPECT_EQ(calls_of(parsed), habit.calls) << habit.text;
    for (int round = 0; round < 20; ++round)
      EXPECT_EQ(in_pieces(parser(habit.dialect), habit.text, random_cuts(rng, habit.text.size())), parsed)
          << habit.text;
  }
}

// A parser's special tokens must stay in the decoded text.
TEST(ToolParser, SpecialTokensOfCallsAreKept) {
  const std::pair<std::string_view, std::vector<std::string>> dialects[] = {
      {"gemma4", {"<|tool_call>", "<tool_call|>", "<|\"|>"}},
      {"mistral_v11", {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"}},
      {"llama4_pythonic", {"<|python_start|>", "<|python_end|>"}}};
  for (const auto& [dialect, marks] : dialects) {
    const auto ids = tool_tokens(*grammar::tool_dialect(dialect), byte_tokenizer(marks));
    EXPECT_EQ(ids.size(), marks.size()) << dialect;
  }
}

TEST(ToolParser, BrokenListsAreContent) {
  for (const std::string_view text : {"[add(1), see(2)]", "[add(1) , and more", "[add(a=x), {\"a\": 1}]",
                                      "[add(1)]", "[add(1), add(", "[f, g]"}) {
    EXPECT_EQ(parse("pythonic", text), (ParsedText{.content = std::string(text)})) << text;
    EXPECT_EQ(parse("lfm2", "<|tool_call_start|>" + std::string(text)).content,
              "<|tool_call_start|>" + std::string(text));
  }
  const std::string json = "[{\"name\": \"f\"}, {\"a\": [1, 2]}, 3]";
  EXPECT_EQ(parse("xlam", json), (ParsedText{.content = json}));
  EXPECT_EQ(parse("kimi_k2", "<|tool_call_begin|>0<|tool_call_argument_begin|>{\"x\": 1}<|tool_call_end|>")
                .calls.size(),
            0U);
}

// If the text of a call cannot be read completely, it becomes content, with and without streaming.
TEST(ToolParser, BrokenCallsAreContent) {
  const std::pair<std::string_view, std::string> broken[] = {
      {"pythonic", "[get_weather(\"x\")]"},
      {"llama3_json",
       "{\"type\": \"function\", \"function\": {\"name\": \"add\", \"parameters\": {\"a\": 1}}}"},
      {"hermes", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"q\": \"a\nb\"}}\n</tool_call>"},
      {"hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {\"q\": 1,}}</tool_call>"},
      {"glm47", "<tool_call>get_weather in words</tool_call>"},
      {"qwen3_coder", "<tool_call>\n<function=get_weather>\ncity: x\n</function>\n</tool_call>"},
      {"qwen3_coder", "<function=unknown>\n<parameter=q>x</parameter></function>"},
  };
  for (const auto& [dialect, text] : broken) {
    EXPECT_EQ(parse(dialect, text), (ParsedText{.content = text})) << text;
    std::vector<std::size_t> every(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) every[i] = i;
    EXPECT_EQ(in_pieces(parser(dialect), text, every), (ParsedText{.content = text})) << text;
  }
}

// If the model has ended the text itself, a call without closing markers is complete. If a limit has ended
// it, parameters may be missing.
TEST(ToolParser, ClosingMarksMayBeMissingWhereTheModelStops) {
  const std::string head = "<tool_call>\n<function=get_weather>\n<parameter=note>\n";
  const auto read = [](const std::string& text, bool whole, std::size_t step) {
    ToolParser reader = parser("qwen3_coder");
    ParsedText all;
    for (std::size_t at = 0; at < text.size(); at += step) all.append(reader.push(text.substr(at, step)));
    all.append(reader.finish(whole));
    return all;
  };
  for (const std::string& note : {std::string("x"), std::string(2000, 'n')}) {
    const ParsedText called{.calls = {call(0, "get_weather", "{\"note\": \"" + note + "\"}")}};
    for (const std::string end : {"\n</parameter>", "\n</parameter>\n</func", "\n</parameter>\n</function>"})
      for (const std::size_t step : {1uz, 5000uz})
        EXPECT_EQ(read(head + note + end, true, step), called) << end;
  }
  EXPECT_TRUE(read(head + "x\n</parameter>", false, 1).calls.empty());
  EXPECT_TRUE(read(head + "x\n</parameter>\n<parameter=city>\ny", true, 1).calls.empty());
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
