// Deep, huge or contradictory inputs must give an error or a grammar within the limits, and must need little
// stack.
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/pack.h"
#include "grammar/grammar_cache.h"
#include "grammar/json_schema.h"
#include "grammar/testing.h"

namespace octavo::grammar {
namespace {

// AddressSanitizer enlarges every stack frame.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kStackBytes = 2u << 20;
#else
constexpr std::size_t kStackBytes = 256u << 10;
#endif

void on_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* f) -> void* {
                  (*static_cast<const std::function<void()>*>(f))();
                  return nullptr;
                },
                const_cast<std::function<void()>*>(&work)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

Result<std::shared_ptr<const CompiledGrammar>> compile(GrammarKind kind, std::string text) {
  static const auto vocabulary = testing::byte_vocabulary();
  TRY(Grammar grammar, make_grammar({kind, std::move(text), {}}));
  return CompiledGrammar::compile(std::move(grammar), vocabulary);
}

TEST(BadInput, Nesting) {
  on_small_stack([] {
    for (const std::size_t depth : {10u, 60u, 99u, 101u, 1000u, 100'000u, 1'000'000u}) {
      const bool fits = depth <= 99;
      const auto nested = [&](GrammarKind kind, std::string_view open, std::string_view middle,
                              std::string_view close) {
        const auto grammar =
            compile(kind, repeated(open, depth) + std::string(middle) + repeated(close, depth));
        if (kind != GrammarKind::json_schema || depth <= 25) {
          EXPECT_EQ(grammar.has_value(), fits) << open << depth << (grammar ? "" : grammar.error().message);
        }
        if (!grammar) {
          EXPECT_EQ(grammar.error().code, ErrorCode::invalid_argument);
          EXPECT_FALSE(grammar.error().message.empty());
          EXPECT_LT(grammar.error().message.size(), 4000u);
        }
      };
      nested(GrammarKind::regex, "(", "a", ")");
      nested(GrammarKind::regex, "(a|", "b", ")*");
      compile(GrammarKind::regex, repeated("(x(?:y", depth) + "b" + repeated("){2})?", depth));
      compile(GrammarKind::ebnf, "root ::= " + repeated("(", depth) + "\"a\"" + repeated(")", depth));
      compile(GrammarKind::ebnf,
              "root ::= " + repeated("(\"x\" | ", depth) + "\"a\"" + repeated(")*", depth));
      nested(GrammarKind::json_schema, R"({"type":"array","items":)", "{}", "}");
      nested(GrammarKind::json_schema, R"({"properties":{"a":)", "{}", "}}");
      nested(GrammarKind::json_schema, R"({"anyOf":[{"type":"null"},)", "{}", "]}");
      nested(GrammarKind::json_schema, R"({"allOf":[)", "{}", "]}");
      nested(GrammarKind::json_schema, R"({"not":)", "{}", "}");
      compile(GrammarKind::json_schema,
              repeated(R"({"oneOf":[{"const":1},)", depth) + "{}" + repeated("]}", depth));
      nested(GrammarKind::json_schema, R"({"if":)", "{}", R"(,"then":false})");
      nested(GrammarKind::json_schema, R"({"const":[)", "1", "]}");
      EXPECT_FALSE(compile(GrammarKind::json_schema, repeated("[", depth) + "1" + repeated("]", depth)));
    }
  });
}

TEST(BadInput, LongChainsOfRules) {
  on_small_stack([] {
    std::string schema = R"({"$ref":"#/$defs/r0","$defs":{)", ebnf = "root ::= r0\n",
                left = "root ::= r0 \"a\"\n";
    for (int i = 0; i < 3000; ++i) {
      schema += fmt::format(R"("r{}":{{"$ref":"#/$defs/r{}"}},)", i, i + 1);
      ebnf += fmt::format("r{} ::= r{}\n", i, i + 1);
      left += fmt::format("r{} ::= r{} \"b\" | \"c\"\n", i, i + 1);
    }
    EXPECT_FALSE(compile(GrammarKind::json_schema, schema + R"("r3000":{"type":"null"}}})"));
    const auto chain = compile(GrammarKind::ebnf, ebnf + "r3000 ::= \"x\"");
    ASSERT_TRUE(chain) << chain.error().message;
    EXPECT_TRUE(testing::accepts(*chain, "x"));
    const auto loop = compile(GrammarKind::ebnf, left + "r3000 ::= r0 \"d\" | \"e\"");
    ASSERT_TRUE(loop) << loop.error().message;
    EXPECT_TRUE(testing::accepts(*loop, "cba"));
  });
}

TEST(BadInput, Repetitions) {
  on_small_stack([] {
    for (const char* pattern : {"a{1000000000}", "(a{1000000}){1000000}", "((a?){1000000}){1000000}",
                                "(a*){5,1000000}", "(|a){9}{3}"})
      compile(GrammarKind::regex, pattern);
    EXPECT_FALSE(compile(GrammarKind::regex, "a{4294967295}"));
    EXPECT_FALSE(compile(GrammarKind::regex, "a{99999999999999999999}"));
    EXPECT_FALSE(compile(GrammarKind::ebnf, "root ::= \"a\"{5,3}"));
    const auto huge =
        compile(GrammarKind::json_schema, R"({"type":"string","minLength":1000000,"maxLength":2000000000})");
    ASSERT_TRUE(huge);
    EXPECT_LT((*huge)->state_count(), 100u);
    EXPECT_TRUE(
        compile(GrammarKind::json_schema, R"({"type":"string","pattern":"^a*$","maxLength":100000000})"));
    EXPECT_TRUE(
        compile(GrammarKind::json_schema, R"({"type":"string","pattern":"a","maxLength":100000000})"));
    EXPECT_FALSE(
        compile(GrammarKind::json_schema, R"({"type":"string","pattern":"a","minLength":100000000})"));
    EXPECT_TRUE(compile(GrammarKind::json_schema,
                        R"({"type":"array","items":{},"minItems":100000,"maxItems":999999999})"));
    EXPECT_FALSE(compile(GrammarKind::json_schema, R"({"type":"integer","minimum":1e999999})"));
    EXPECT_TRUE(
        compile(GrammarKind::json_schema,
                R"({"type":"number","minimum":-1.7976931348623157e308,"maximum":1.7976931348623157e308})"));
  });
}

TEST(BadInput, Explosions) {
  on_small_stack([] {
    EXPECT_TRUE(compile(GrammarKind::regex, "(a|b)*a(a|b){30}"));
    std::string all = R"({"allOf":[)";
    for (int i = 0; i < 20; ++i)
      all +=
          fmt::format(R"({}{{"anyOf":[{{"required":["a{}"]}},{{"required":["b{}"]}}]}})", i ? "," : "", i, i);
    const auto schema = compile(GrammarKind::json_schema, all + R"(],"type":"object"})");
    ASSERT_FALSE(schema);
    EXPECT_NE(schema.error().message.find("combinations"), std::string::npos);
    std::string mutual = R"({"$defs":{)";
    for (int i = 0; i < 60; ++i)
      mutual += fmt::format(
          R"("d{}":{{"type":"object","properties":{{"x":{{"$ref":"#/$defs/d{}"}},"y":{{"$ref":"#/$defs/d{}"}}}}}},)",
          i, (i * 7 + 1) % 60, (i * 11 + 3) % 60);
    EXPECT_TRUE(compile(GrammarKind::json_schema, mutual + R"("z":{}},"$ref":"#/$defs/d0"})"));
    // Merging two recursive schemas must visit each pair of schemas only once.
    EXPECT_TRUE(compile(GrammarKind::json_schema,
                        R"({"$defs":{"a":{"type":"object","properties":{"x":{"$ref":"#/$defs/b"}}},
      "b":{"type":"object","properties":{"x":{"$ref":"#/$defs/c"}}},"c":{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}}},
      "d":{"type":"object","properties":{"x":{"$ref":"#/$defs/e"}}},"e":{"type":"object","properties":{"x":{"$ref":"#/$defs/d"}}}},
      "allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/d"}]})"));
  });
}

// Each part alone would be accepted. All parts together take too long to read or to build.
TEST(BadInput, ManyHardParts) {
  on_small_stack([] {
    const auto refused = [](GrammarKind kind, std::string text, std::string_view why) {
      const auto grammar = compile(kind, std::move(text));
      ASSERT_FALSE(grammar) << why;
      EXPECT_NE(grammar.error().message.find(why), std::string::npos) << grammar.error().message;
    };
    std::string patterns = R"({"properties":{)", numbers = patterns, branches = R"({"oneOf":[{})";
    for (int i = 0; i < 600; ++i) {
      patterns += fmt::format(R"("n{0}":{{"type":"string","pattern":"x{0}.{{4}}y"}},)", i);
      numbers += fmt::format(R"("n{}":{{"type":"number","maximum":{}{}}},)", i, i + 1, repeated("7", 99));
      branches += fmt::format(R"(,{{"const":{}}})", i);
    }
    refused(GrammarKind::json_schema, patterns + R"("z":{}}})", "steps");
    refused(GrammarKind::json_schema, numbers + R"("z":{}}})", "steps");
    refused(GrammarKind::json_schema, branches + "]}", "601 branches");
    refused(GrammarKind::regex, "(?:" + repeated("a?", 4000) + ")" + repeated("a", 4000), "steps to compile");
    refused(GrammarKind::regex, repeated("a", 300'000), "the limit is 262144");
  });
}

TEST(BadInput, BudgetsNameThePlace) {
  const auto refused = [](GrammarKind kind, std::string text, std::string_view excerpt) {
    const auto grammar = compile(kind, std::move(text));
    ASSERT_FALSE(grammar) << excerpt;
    EXPECT_NE(grammar.error().message.find(excerpt), std::string::npos) << grammar.error().message;
  };
  const auto object = [](int count, const std::function<std::string(int)>& value,
                         std::string_view more = "") {
    std::string text = R"({"type":"object","properties":{)";
    for (int i = 0; i < count; ++i) text += fmt::format(R"({}"n{}":{})", i ? "," : "", i, value(i));
    return text + "}" + std::string(more) + "}";
  };
  const auto json = GrammarKind::json_schema;
  const auto pattern = [](int i) { return fmt::format(R"({{"type":"string","pattern":"x{}.{{7}}y"}})", i); };
  const auto schema = json_schema_grammar(object(500, pattern));
  ASSERT_FALSE(schema);
  for (const std::string_view part : {"'pattern' at #/properties/n", "/pattern: ", " 2400000 steps"})
    EXPECT_NE(schema.error().message.find(part), std::string::npos) << schema.error().message;
  refused(
      json,
      R"({"$defs":{"a/b":{"type":"string","pattern":"a","minLength":100000}},"items":{"$ref":"#/$defs/a~1b"}})",
      "'minLength' at #/$defs/a~1b/minLength");
  refused(json,
          object(400,
                 [](int i) {
                   return fmt::format(R"({{"type":"number","maximum":{}{}}})", i + 1, repeated("7", 99));
                 }),
          "at #/properties/n");
  refused(json,
          object(600, [](int) { return "{}"; }, R"(,"minProperties":300)"), "'properties' at #/properties");
  // Long names are read quickly, but their automaton is large.
  std::string long_names;
  for (int i = 0; i < 100; ++i)
    long_names += fmt::format(R"({}"{}{}":{{}})", i ? "," : "", i, repeated("x", 5000));
  refused(json, fmt::format(R"({{"properties":{{"deep":{{"properties":{{{}}}}}}}}})", long_names),
          "the limit is reached in #/properties/deep");
  refused(GrammarKind::regex, "(?:" + repeated("a?", 4000) + ")" + repeated("a", 4000), "in the regex");
  refused(GrammarKind::regex, repeated("\\p{L}", 1000), "ranges in total");
  std::string rules = "root ::= wide\nwide ::= \"a\"";
  for (int i = 0; i < 5000; ++i) rules += " | [a-z]{40}";
  refused(GrammarKind::ebnf, rules, "in rule ");
}

TEST(BadInput, HonestSchemasFitTheBudgets) {
  const auto fits = [](const std::string& schema) {
    const auto grammar = compile(GrammarKind::json_schema, schema);
    EXPECT_TRUE(grammar) << schema.substr(0, 200) << ": " << grammar.error().message;
  };
  const auto object = [](int count, const std::function<std::string(int)>& value,
                         std::string_view more = "") {
    std::string text = R"({"type":"object","properties":{)";
    for (int i = 0; i < count; ++i) text += fmt::format(R"({}"field_{}":{})", i ? "," : "", i, value(i));
    return text + "}" + std::string(more) + "}";
  };
  const auto same = [](std::string text) { return [text](int) { return text; }; };
  constexpr std::string_view kPatterns[] = {R"(^[A-Z]{2}\\d{6}$)", R"(^\\S.*\\S$)", R"(^[\\w .,'-]+$)",
                                            R"(^\\p{L}[\\p{L} '-]*$)", R"(^(https?)://[^\\s/$.?#].[^\\s]*$)"};
  fits(object(100, same(R"({"type":"string","pattern":"^[A-Za-z]\\w*$","maxLength":100})")));
  fits(object(100, [&](int i) {
    return fmt::format(R"({{"type":"string","pattern":"{}","maxLength":100,"title":"{}"}})", kPatterns[i % 5],
                       i);
  }));
  fits(object(100, [](int i) {
    return fmt::format(R"({{"type":"string","pattern":"^x{}[a-z]*$","maxLength":{}}})", i, 100 + i);
  }));
  fits(object(10, same(R"({"type":"string","pattern":"^[^\\n]*$","maxLength":100000})")));
  fits(object(100, same(R"({"type":"string","format":"email","maxLength":254})")));
  fits(object(50, same(R"({"type":"string","format":"uri","maxLength":2048})")));
  for (const std::string_view bounds :
       {R"(,"minProperties":1)", R"(,"minProperties":30)", R"(,"maxProperties":10)"})
    fits(object(20, same(object(60, same(R"({"type":"string"})"), bounds))));
  fits(object(20, [&](int i) {
    return object(
        60, [i](int j) { return fmt::format(R"({{"const":"{}{}"}})", i, j); }, R"(,"minProperties":5)");
  }));
  fits(object(2000, same(R"({"type":"string"})")));
  fits(object(
      20, same(object(50, same(R"({"type":"string"})"),
                      R"(,"patternProperties":{"^x-":{},"^data-[a-z]+$":{},"_id$":{"type":"integer"}})"))));
  std::string words;
  for (int i = 0; i < 1000; ++i) words += fmt::format(R"({}"word{}")", i ? "," : "", i * 7919 % 100003);
  fits(object(20, same(fmt::format(R"({{"type":"string","not":{{"enum":[{}]}}}})", words))));
  fits(object(100, same(fmt::format(R"({{"allOf":[{{"enum":[{}]}},{{"pattern":"1"}}]}})", words))));
}

// The work for an ambiguous grammar is limited, and masks never allow a wrong token.
TEST(BadInput, Ambiguity) {
  on_small_stack([] {
    const auto grammar = compile(GrammarKind::ebnf, "root ::= root root root | \"a\" | \"\"");
    ASSERT_TRUE(grammar);
    Matcher matcher(*grammar);
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(matcher.accept('a'));
    EXPECT_FALSE(matcher.accept('b'));
    EXPECT_TRUE(matcher.can_terminate());
  });
}

// A mask that needs more work than kWorkMax is an error. After a rollback, masks can be computed again.
TEST(BadInput, TooManyReadings) {
  on_small_stack([] {
    const auto grammar =
        compile(GrammarKind::ebnf,
                R"(root ::= root root root | root root | "a" | "b" root root "b" | "b" root | "")");
    ASSERT_TRUE(grammar);
    Matcher matcher(grammar.value());
    std::vector<std::int32_t> mask(matcher.vocabulary().mask_words());
    Result<void> filled;
    while (filled && matcher.accepted() < 5000) {
      filled = matcher.fill_mask(mask);
      if (filled && !matcher.accept('b')) break;
    }
    filled = matcher.fill_mask(mask);
    ASSERT_FALSE(filled) << matcher.accepted();
    EXPECT_EQ(filled.error().code, ErrorCode::resource_exhausted);
    EXPECT_NE(filled.error().message.find("too ambiguous"), std::string::npos) << filled.error().message;
    matcher.rollback(matcher.accepted() - 3);
    EXPECT_TRUE(matcher.fill_mask(mask));
    EXPECT_FALSE(matcher.accept('c'));
    EXPECT_TRUE(matcher.accept('a'));
  });
}

// Stored tables with a valid hash but invalid indices must be refused.
TEST(BadInput, StoredTablesThatNoGrammarHas) {
  // size of the header's last field, and number of hashed bytes
  constexpr std::size_t kHash = 32, kTables = 48;
  const auto vocabulary = testing::byte_vocabulary();
  const auto grammar = json_schema_grammar(R"({"type":"array","items":{"type":"object"}})");
  ASSERT_TRUE(grammar);
  const auto compiled = CompiledGrammar::compile(*grammar, vocabulary);
  ASSERT_TRUE(compiled);
  const std::string stored = (*compiled)->to_bytes();
  const auto loads = [&](auto&& change) {
    Tables tables;
    Unpacker(std::as_bytes(std::span(stored)).subspan(kTables)).get(tables);
    change(tables);
    std::string text, hash;
    Packer(text).put(tables);
    Packer(hash).put(hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(text)), 0));
    return CompiledGrammar::from_bytes(stored.substr(0, kHash) + hash + text, vocabulary).has_value();
  };
  EXPECT_TRUE(loads([](Tables&) {}));
  EXPECT_FALSE(loads([](Tables& t) {
    for (Tables::StateRow& state : t.states) {
      if (state.bytes_end == state.edges) continue;
      t.edges[state.edges].ref = 1u << 30;
      state.bytes_end = state.edges;
      return;
    }
  })) << "a byte is read as a call";
  EXPECT_FALSE(loads([](Tables& t) {
    for (Edge& edge : t.edges) edge.target = static_cast<StateId>(t.states.size() - 1);
  })) << "an edge leaves its automaton";
  EXPECT_FALSE(loads([](Tables& t) {
    for (Tables::RuleRow& rule : t.rules)
      if (rule.kind == Tables::RuleRow::Kind::automaton)
        rule.start = static_cast<StateId>(t.states.size() - 1);
  })) << "rules have one start";
}

}  // namespace
}  // namespace octavo::grammar
