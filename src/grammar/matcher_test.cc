// Compares the masks of one matcher with masks that are computed with little memory, on several threads, or
// by the try_ functions.
#include "grammar/matcher.h"

#include <gtest/gtest.h>

#include <new>

#include "base/testing/allocations.h"
#include "base/thread_pool.h"
#include "grammar/grammar_cache.h"
#include "grammar/testing.h"

namespace octavo::grammar {
namespace {

const std::shared_ptr<const Vocabulary>& vocabulary() {
  static const auto made = testing::byte_vocabulary(
      {"\"a\"", "\":", "{\"", "\",", "ab", "abc", "12", "}}", "[]", "true,", "a\":1", "{}", "\"b\"", "\":["},
      {"<|x|>"});
  return made;
}

std::shared_ptr<const CompiledGrammar> compile(const GrammarSource& source, std::size_t bytes = 32u << 20) {
  auto grammar = make_grammar(source);
  EXPECT_TRUE(grammar) << grammar.error().message;
  auto compiled = CompiledGrammar::compile(*std::move(grammar), vocabulary(), bytes);
  EXPECT_TRUE(compiled) << compiled.error().message;
  return *compiled;
}

std::vector<GrammarSource> sources() {
  return {{GrammarKind::json_object, "", {}},
          {GrammarKind::regex, "(ab|abc|12){2,90}", {}},
          {GrammarKind::ebnf, "root ::= root \"a\" | \"ab\" | <|x|> root root", {}},
          {GrammarKind::json_schema,
           R"({"type":"object","properties":{"a":{"$ref":"#"},"ab":{"type":"string","maxLength":70}}})",
           {}}};
}

class Random {
 public:
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>((state_ = state_ * 6364136223846793005ull + 1442695040888963407ull) >>
                                    33) %
           n;
  }

 private:
  std::uint64_t state_ = 11;
};

// Returns an allowed token, or in one of five calls any token.
TokenId draw(const std::vector<bool>& mask, Random& random) {
  if (random.below(5) == 0) return static_cast<TokenId>(random.below(mask.size()));
  std::vector<TokenId> allowed;
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i]) allowed.push_back(static_cast<TokenId>(i));
  return allowed.empty() ? 0 : allowed[random.below(allowed.size())];
}

// The parser deletes its configurations between calls, so their ids change.
TEST(Matcher, ForksOfAClearedParserHaveTheMasksOfALargeOne) {
  Random random;
  std::size_t taken = 0, ended = 0;
  for (const GrammarSource& source : sources()) {
    const auto small = compile(source, std::size_t{256} << 10), large = compile(source);
    for (int round = 0; round < 25; ++round) {
      std::vector<Matcher> forks{Matcher(small)}, expected{Matcher(large)};
      for (int i = 0; i < 20; ++i) {
        const auto before = random.below(forks.size());
        forks.push_back(forks[before]);
        expected.push_back(expected[before]);
        const TokenId token = draw(testing::mask_of(expected.back(), *vocabulary()), random);
        const bool takes = expected.back().accept(token);
        ASSERT_EQ(forks.back().accept(token), takes) << source.text << i;
        taken += takes;
        ended += expected.back().is_terminated();
        ASSERT_EQ(testing::mask_of(forks.back(), *vocabulary()),
                  testing::mask_of(expected.back(), *vocabulary()))
            << source.text << i;
      }
    }
  }
  EXPECT_GT(taken, 1000u);
  EXPECT_GT(ended, 10u);
}

TEST(Matcher, ThreadsShareAGrammar) {
  ThreadPool pool(4);
  Random random;
  std::vector<std::shared_ptr<const CompiledGrammar>> grammars, unshared;
  for (const GrammarSource& source : sources()) {
    grammars.push_back(compile(source));
    unshared.push_back(compile(source));
  }
  std::vector<Matcher> matchers, expected;
  for (std::size_t i = 0; i < 33; ++i) {
    matchers.emplace_back(grammars[i % grammars.size()]);
    expected.emplace_back(unshared[i % grammars.size()]);
  }
  std::vector<std::vector<bool>> masks(matchers.size());
  for (int step = 0; step < 30; ++step) {
    pool.for_units(static_cast<std::int64_t>(matchers.size()), [&](int, std::int64_t unit) {
      const auto i = static_cast<std::size_t>(unit);
      masks[i] = testing::mask_of(matchers[i], *vocabulary());
    });
    for (std::size_t i = 0; i < matchers.size(); ++i) {
      ASSERT_EQ(masks[i], testing::mask_of(expected[i], *vocabulary())) << step << " " << i;
      const TokenId token = draw(masks[i], random);
      ASSERT_EQ(matchers[i].accept(token), expected[i].accept(token));
    }
  }
}

// The try_ functions return the same masks or nullopt.
TEST(Matcher, TriesSayTheSameOrNothing) {
  std::vector<std::string> pairs;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = '0'; b <= 'z'; ++b) pairs.push_back({a, b});
  const auto large = testing::byte_vocabulary(pairs, {});
  const auto compiled = [&](const GrammarSource& source) {
    return CompiledGrammar::compile(make_grammar(source).value(), large).value();
  };
  Random random;
  std::size_t left = 0, found = 0;
  for (const GrammarSource& source :
       {GrammarSource{GrammarKind::json_object, "", {}},
        GrammarSource{GrammarKind::regex, "(ab|abc|12){2,90}", {}},
        GrammarSource{GrammarKind::ebnf, "root ::= root root root | root root | [a-z] | [0-9]", {}}}) {
    Matcher tries(compiled(source)), waits(compiled(source));
    for (int step = 0; step < 30; ++step) {
      std::vector<std::int32_t> mask(large->mask_words()), tried(mask);
      ASSERT_TRUE(waits.fill_mask(mask));
      auto first = tries.try_fill_mask(tried);
      ++(first ? found : left);
      if (!first) {
        ASSERT_TRUE(tries.fill_mask(tried));
        first = tries.try_fill_mask(tried);
      }
      ASSERT_TRUE(first && *first) << "what was found is not there for the next try";
      ASSERT_EQ(tried, mask);
      const auto forced = tries.try_forced_tokens();
      EXPECT_TRUE(!forced || *forced == waits.forced_tokens());
      const TokenId token = draw(testing::mask_of(waits, *large), random);
      const bool taken = waits.accept(token);
      const auto took = tries.try_accept(token);
      EXPECT_EQ(took ? *took : tries.accept(token), taken);
      ASSERT_EQ(tries.accepted(), waits.accepted());
      if (waits.is_terminated()) break;
    }
  }
  EXPECT_GT(left, 3u);
  EXPECT_GT(found, 20u);
}

TEST(Matcher, TriesCountOpenNodes) {
  std::vector<std::string> words;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b)
      for (char c = 'a'; c <= 'z'; ++c) words.push_back({a, b, c});
  const auto large = testing::byte_vocabulary(words, {});
  const auto grammar = make_grammar({GrammarKind::regex, "[a-z]{0,300}[b-z]", {}}).value();
  Matcher matcher(CompiledGrammar::compile(grammar, large).value());
  std::vector<std::int32_t> mask(large->mask_words());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(matcher.fill_mask(mask));
    ASSERT_TRUE(matcher.accept('a'));
  }
  EXPECT_FALSE(matcher.try_fill_mask(mask));
  ASSERT_TRUE(matcher.fill_mask(mask));
  EXPECT_TRUE(matcher.try_fill_mask(mask));
}

TEST(Matcher, MemoryThatRunsOutCostsOneCall) {
  for (const GrammarSource& source : sources()) {
    const auto grammar = compile(source), fresh = compile(source);
    Matcher matcher(grammar), expected(fresh);
    Random random;
    std::vector<std::int32_t> mask(vocabulary()->mask_words()), whole(mask);
    int failures = 0, steps = 0;
    for (; steps < 20 && !expected.is_terminated(); ++steps) {
      const TokenId token = draw(testing::mask_of(expected, *vocabulary()), random);
      for (std::size_t bytes = 1; bytes < 4096; bytes *= 2) {
        const ScarceMemory scarce(bytes);
        try {
          (void)matcher.fill_mask(mask);
          Matcher fork = matcher;
          fork.accept(token);
          (void)fork.fill_mask(mask);
        } catch (const std::bad_alloc&) {
          ++failures;
        }
        (void)matcher.try_fill_mask(mask);
        (void)matcher.try_forced_tokens();
      }
      ASSERT_TRUE(expected.fill_mask(whole));
      ASSERT_TRUE(matcher.fill_mask(mask));
      ASSERT_EQ(mask, whole) << source.text << " " << steps;
      ASSERT_EQ(matcher.accept(token), expected.accept(token)) << source.text << " " << steps;
    }
    EXPECT_GT(failures, steps) << source.text;
  }
}

}  // namespace
}  // namespace octavo::grammar
