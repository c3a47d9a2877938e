// Tests that take too long for every run: 100,000 schemas in one cache, and hostile texts of full size.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "grammar/grammar_cache.h"
#include "grammar/testing.h"

namespace octavo::grammar {
namespace {

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(getpagesize());
}

TEST(GrammarLarge, DistinctSchemasStayWithinTheCache) {
  constexpr std::size_t kLimit = 16u << 20;
  const auto vocabulary = testing::byte_vocabulary({"\"a\"", "\":", "{\"", "abc", "12"});
  GrammarCache cache(vocabulary, kLimit, 1u << 20);
  std::vector<std::int32_t> mask(vocabulary->mask_words());
  std::size_t settled = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto grammar = cache.compile(
        {GrammarKind::json_schema,
         fmt::format(
             R"({{"type":"object","properties":{{"name_{0}":{{"type":"string","maxLength":{1}}},"k":{{"enum":["v{0}",{0}]}}}},"required":["k"]}})",
             i, i % 200 + 1),
         {}});
    ASSERT_TRUE(grammar) << grammar.error().message;
    Matcher matcher(*grammar);
    ASSERT_TRUE(matcher.accept('{'));
    ASSERT_TRUE(matcher.fill_mask(mask));
    ASSERT_LE(cache.stats().bytes, kLimit);
    if (i == 20'000) settled = resident_bytes();
  }
  EXPECT_GT(cache.stats().evictions, 90'000u);
  // The process must not need more memory once the cache is full.
  EXPECT_LT(resident_bytes(), settled + kLimit);
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

// Prints how long each text takes to compile.
TEST(GrammarLarge, HostileTexts) {
  std::vector<std::pair<std::string, GrammarSource>> all;
  const auto add = [&](std::string name, GrammarKind kind, std::string text) {
    all.push_back({std::move(name), {kind, std::move(text), {}}});
  };
  for (const std::size_t depth : {10u, 99u, 1000u, 1'000'000u}) {
    const std::string n = fmt::format(" {}", depth);
    add("regex groups" + n, GrammarKind::regex, repeated("(a|", depth) + "b" + repeated(")*", depth));
    add("ebnf groups" + n, GrammarKind::ebnf,
        "root ::= " + repeated("(\"x\" | ", depth) + "\"a\"" + repeated(")*", depth));
    add("lark groups" + n, GrammarKind::ebnf,
        "start: " + repeated("[\"x\" | (", depth) + "\"a\"" + repeated(")*]", depth));
    add("items" + n, GrammarKind::json_schema, repeated(R"({"items":)", depth) + "{}" + repeated("}", depth));
    add("anyOf" + n, GrammarKind::json_schema,
        repeated(R"({"anyOf":[{"type":"null"},)", depth) + "{}" + repeated("]}", depth));
    add("const" + n, GrammarKind::json_schema,
        R"({"const":)" + repeated("[", depth) + repeated("]", depth) + "}");
    add("not" + n, GrammarKind::json_schema, repeated(R"({"not":)", depth) + "{}" + repeated("}", depth));
  }
  std::string values, lark = "start: r0\n", ebnf = "root ::= r0\n";
  for (int i = 0; i < 100'000; ++i) values += fmt::format("{}\"item_{}\"", i ? "," : "", i);
  for (int i = 0; i < 20'000; ++i) {
    lark += fmt::format("r{}: r{} \"b\" | \"c\"\n", i, i + 1);
    ebnf += fmt::format("r{} ::= r{} | \"c\" r{}\n", i, i + 1, i / 2);
  }
  add("enum 100000", GrammarKind::json_schema, R"({"enum":[)" + values + "]}");
  add("choice 100000", GrammarKind::choice, "[" + values + "]");
  add("left recursion 20000", GrammarKind::ebnf, lark + "r20000: r0 \"d\" | \"e\"");
  add("tail calls 20000", GrammarKind::ebnf, ebnf + "r20000 ::= \"x\"");
  add("undefined", GrammarKind::ebnf, lark);
  add("endless", GrammarKind::ebnf, "start: \"a\" start");
  add("ambiguous", GrammarKind::ebnf, R"(root ::= root root | "a" | "b" root root "b" | "")");
  add("nested repeats", GrammarKind::regex, "((a?){1000000}){1000000}");
  add("inverted", GrammarKind::regex, "a{5,3}");
  add("huge", GrammarKind::regex, "a{99999999999999999999}");
  add("not UTF-8", GrammarKind::regex, repeated("\xFF", 1'000'000));
  add("contradiction", GrammarKind::json_schema, R"({"type":"integer","minimum":5,"maximum":3})");
  add("pattern, long tail", GrammarKind::json_schema,
      R"({"type":"string","pattern":"d(a|b)*W(a|b)false{546}$"})");
  add("pattern, growth", GrammarKind::json_schema, R"({"type":"string","pattern":"(a|b)*a(a|b){30}"})");
  add("recursive $ref", GrammarKind::json_schema, R"({"$ref":"#"})");
  const auto vocabulary = testing::byte_vocabulary({"ab", "abc", "\"item_1"});
  for (const auto& [name, source] : all) {
    const auto start = std::chrono::steady_clock::now();
    auto grammar = make_grammar(source);
    std::string end;
    if (grammar) {
      const auto compiled = CompiledGrammar::compile(*std::move(grammar), vocabulary, 4u << 20);
      if (compiled) {
        Matcher matcher(*compiled);
        for (const char c : std::string_view("bbbbbbbbbbbbbbbbbbbbbbbb")) {
          std::vector<std::int32_t> mask(vocabulary->mask_words());
          if (!matcher.fill_mask(mask) || !matcher.accept(c)) break;
        }
      } else {
        end = compiled.error().message;
      }
    } else {
      end = grammar.error().message;
    }
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    EXPECT_LT(end.size(), 4000u) << name;
    fmt::print("{:8.1f} ms  {:22} {}\n", ms, name, end.substr(0, 100));
  }
}

}  // namespace
}  // namespace octavo::grammar
