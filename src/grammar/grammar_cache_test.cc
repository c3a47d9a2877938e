#include "grammar/grammar_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "grammar/state_mask.h"
#include "grammar/testing.h"

namespace octavo::grammar {
namespace {

TEST(GrammarCache, HitsMissesAndErrors) {
  GrammarCache cache(testing::byte_vocabulary(), 64u << 20);
  const GrammarSource regex{GrammarKind::regex, "a+", {}};
  const auto first = cache.compile(regex), second = cache.compile(regex);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  GrammarSource loose{GrammarKind::json_schema, "{\"type\":\"object\",\"properties\":{}}", {}};
  const auto strict = cache.compile(loose);
  loose.options.strict = false;
  EXPECT_NE(*strict, *cache.compile(loose));
  EXPECT_FALSE(cache.compile({GrammarKind::regex, "(", {}}));
  EXPECT_FALSE(cache.compile({GrammarKind::choice, "[1]", {}}));
  EXPECT_FALSE(cache.compile({GrammarKind::choice, "[]", {}}));
  EXPECT_TRUE(testing::accepts(*cache.compile({GrammarKind::choice, R"(["yes","no"])", {}}), "no"));
  EXPECT_TRUE(testing::accepts(*cache.compile({GrammarKind::json_object, "", {}}), "{ \"a\": [1] }"));
  EXPECT_EQ(cache.stats().hits, 1u);
}

TEST(GrammarCache, ContradictingBoundsAreNamed) {
  GrammarCache cache(testing::byte_vocabulary(), 64u << 20);
  const auto error = [&](std::string_view value) {
    const auto made = cache.compile(
        {GrammarKind::json_schema,
         fmt::format(R"({{"type":"object","properties":{{"a/b":{}}},"required":["a/b"]}})", value),
         {}});
    return made ? "" : made.error().message;
  };
  EXPECT_EQ(error(R"({"type":"string","minLength":5,"maxLength":2})"),
            "JSON Schema: 'maxLength' at #/properties/a~1b/maxLength: 2 and 'minLength' 5 at "
            "#/properties/a~1b/minLength exclude every string; change one of them");
  for (const std::string_view value :
       {R"({"type":"array","minItems":3,"maxItems":2})", R"({"type":"integer","minimum":10,"maximum":9.5})",
        R"({"type":"number","minimum":1,"exclusiveMaximum":1.0})",
        R"({"type":"number","exclusiveMinimum":2e0,"exclusiveMaximum":2})",
        R"({"type":"object","minProperties":2,"maxProperties":1})"})
    EXPECT_TRUE(error(value).contains("' at #/properties/a~1b/")) << error(value);
  EXPECT_EQ(error(R"({"type":"number","minimum":1,"maximum":1})"), "");
  // No value of this member is valid, but the member is optional. So the grammar just has no such member.
  EXPECT_TRUE(cache.compile({GrammarKind::json_schema,
                             R"({"properties":{"a":{"type":"string","minLength":5,"maxLength":2}}})",
                             {}}));
}

TEST(GrammarCache, StaysWithinItsBytes) {
  const std::size_t limit = 1u << 18;
  GrammarCache cache(testing::byte_vocabulary(), limit, 64u << 10);
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(cache.compile({GrammarKind::json_schema, fmt::format("{{\"const\":{}}}", i), {}}));
    ASSERT_LE(cache.stats().bytes, limit);
    ASSERT_GT(cache.stats().bytes, 0u);
  }
  EXPECT_GT(cache.stats().evictions, 300u);
  EXPECT_GT(cache.stats().entries, 10u);
}

TEST(GrammarCache, WarmUpComputesTheMasksOfStrings) {
  std::vector<std::string> words;
  for (int i = 0; i < 20'000; ++i) words.push_back(fmt::format("w{}", i));
  const auto vocabulary = testing::byte_vocabulary(words);
  GrammarCache cache(vocabulary, 64u << 20);
  EXPECT_EQ(vocabulary->cache().byte_size(), 0u);
  cache.warm_up();
  EXPECT_GT(vocabulary->cache().byte_size(), 10'000u);
}

TEST(GrammarCache, ManyThreadsOneGrammar) {
  const auto vocabulary = testing::byte_vocabulary({"ab", "abc", "\"a\":"});
  GrammarCache cache(vocabulary, 64u << 20, 64u << 10);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto grammar = *cache.compile({GrammarKind::json_object, "", {}});
      for (int run = 0; run < 20; ++run) {
        Matcher matcher(grammar);
        const std::string text = fmt::format("{{\"a\":[{},\"ab{}\"]}}", t, run);
        if (!testing::feed(matcher, text) || !matcher.can_terminate()) ++wrong;
        matcher.rollback(5);
        if (testing::mask_of(matcher, *vocabulary) != testing::brute_force_mask(matcher, *vocabulary))
          ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.stats().misses, 1u);
}

// The parser's memory limit is so low that its states are deleted again and again. Masks stay correct.
TEST(Matcher, ForgetsAndReplays) {
  const auto vocabulary = testing::byte_vocabulary();
  const auto grammar = *CompiledGrammar::compile(
      *make_grammar({GrammarKind::ebnf, "root ::= \"(\" root \")\" | [a-z]*", {}}), vocabulary, 24u << 10);
  Matcher a(grammar), b(grammar);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(a.accept('('));
    ASSERT_TRUE(b.accept('('));
    ASSERT_EQ(testing::mask_of(a, *vocabulary), testing::mask_of(b, *vocabulary));
  }
  ASSERT_TRUE(testing::feed(a, "abc" + std::string(40, ')')));
  EXPECT_TRUE(a.can_terminate());
  EXPECT_FALSE(b.can_terminate());
}

}  // namespace
}  // namespace octavo::grammar
