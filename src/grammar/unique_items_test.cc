#include "grammar/unique_items.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "grammar/json_schema.h"
#include "grammar/limits.h"
#include "grammar/test_compile.h"

namespace octavo::grammar {
namespace {

TEST(UniqueItems, CanonicalTextsAreEqualForEqualValues) {
  EXPECT_EQ(canonical_json("1"), canonical_json("1.0"));
  EXPECT_EQ(canonical_json("10"), canonical_json("1e1"));
  EXPECT_EQ(canonical_json(R"("a")"), canonical_json(R"("\u0061")"));
  EXPECT_EQ(canonical_json(R"({"a":1, "b":[ ]})"), canonical_json(R"({"b":[],"a":1.00})"));
  EXPECT_NE(canonical_json("1"), canonical_json(R"("1")"));
  EXPECT_NE(canonical_json("[1,2]"), canonical_json("[2,1]"));
  EXPECT_NE(canonical_json("123456789012345678901234567890"), canonical_json("123456789012345678901234567891"));
}

constexpr std::string_view kStrings = R"({"type":"array","uniqueItems":true,"items":{"type":"string","maxLength":2}})";

// The vocabulary has tokens of several bytes, so an item may end inside a token.
TEST(UniqueItems, MasksAreWhatAcceptTakes) {
  const auto vocabulary = testing::byte_vocabulary(
      {"[\"a\"", "\"a\",", "\"a\",\"a\"", "a\"", "\",\"", "a\",\"b\"]", "\"]", "[\"a\",\"a\"]", "\",\"a", "[1,1]", "[1,2]", "1]"});
  std::uint64_t seed = 3;
  const auto next = [&] { return seed = seed * 6364136223846793005ull + 1442695040888963407ull, seed >> 33; };
  for (const std::string_view schema :
       {kStrings, std::string_view(R"({"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":12}})")}) {
    const auto grammar = CompiledGrammar::compile(*json_schema_grammar(schema, {}), vocabulary);
    ASSERT_TRUE(grammar);
    for (int run = 0; run < 20; ++run) {
      Matcher matcher(*grammar);
      std::vector<TokenId> taken;
      for (int step = 0; step < 30 && !matcher.is_terminated(); ++step) {
        const auto mask = testing::mask_of(matcher, *vocabulary);
        ASSERT_EQ(mask, testing::brute_force_mask(matcher, *vocabulary)) << schema << " after " << step;
        std::vector<TokenId> allowed;
        for (std::size_t i = 0; i < mask.size(); ++i)
          if (mask[i]) allowed.push_back(static_cast<TokenId>(i));
        if (allowed.empty()) break;
        taken.push_back(allowed[next() % allowed.size()]);
        ASSERT_TRUE(matcher.accept(taken.back()));
        if (next() % 5 != 0) continue;
        const std::size_t back = next() % (taken.size() + 1);
        matcher.rollback(back);
        taken.resize(taken.size() - back);
      }
    }
  }
}

TEST(UniqueItems, TakesBackWhatIsRolledBack) {
  const auto grammar = testing::compiled(json_schema_grammar(kStrings, {}), kStrings);
  Matcher matcher(grammar);
  ASSERT_TRUE(testing::feed(matcher, R"(["a","b")"));
  matcher.rollback(4);
  EXPECT_TRUE(testing::feed(matcher, R"(,"b")"));
  EXPECT_FALSE(testing::feed(matcher, R"(,"a")"));
}

TEST(UniqueItems, StringsOfTheLongestLengthCanEnd) {
  const auto grammar = testing::compiled(json_schema_grammar(kStrings, {}), kStrings);
  Matcher matcher(grammar);
  ASSERT_TRUE(testing::feed(matcher, R"(["ab","a)"));
  EXPECT_FALSE(testing::feed(matcher, "b"));
  EXPECT_TRUE(testing::feed(matcher, R"(c","a","b"])"));
}

TEST(UniqueItems, ManyItemsHaveALimit) {
  constexpr std::string_view kAny = R"({"type":"array","uniqueItems":true,"items":{"type":"integer"}})";
  const auto grammar = testing::compiled(json_schema_grammar(kAny, {}), kAny);
  Matcher matcher(grammar);
  ASSERT_TRUE(testing::feed(matcher, "["));
  const std::string zeros(4000, '0');
  std::size_t taken = 0;
  while (taken < 2 * kUniqueBytesMax && testing::feed(matcher, fmt::format("{}1{}", taken > 0 ? "," : "", taken) + zeros))
    taken += zeros.size();
  EXPECT_GT(taken, kUniqueBytesMax / 2);
  EXPECT_LE(taken, kUniqueBytesMax + zeros.size());
}

}  // namespace
}  // namespace octavo::grammar
