// Compares masks that are derived from other states' masks with masks from a full walk.
#include "grammar/dense_rule.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <random>

#include "grammar/regex.h"
#include "grammar/testing.h"
#include "grammar/text_length.h"

namespace octavo::grammar {
namespace {

constexpr std::string_view kLetters = "abc";
constexpr std::size_t kAll = 1u << 20;  // limit above the number of trie nodes

Automaton random_pattern(std::mt19937& random) {
  for (;;) {
    Automaton pattern;
    const std::size_t states = 1 + random() % 4;
    for (std::size_t s = 0; s < states; ++s) {
      State& state = pattern.states.emplace_back(State{random() % 3 == 0, {}});
      for (const char c : kLetters)
        if (const auto byte = static_cast<std::uint8_t>(c); random() % 6 != 0)
          state.edges.push_back({Symbol::bytes, byte, byte, 0, static_cast<StateId>(random() % states)});
    }
    const auto min = static_cast<std::uint32_t>(random() % 6);
    const auto max = min + static_cast<std::uint32_t>(random() % 12);
    const auto with_length = of_length(trim(pattern), {min, max}, 1000);
    if (with_length && !is_empty(*with_length)) return *with_length;
  }
}

Tables tables_of(const Automaton& automaton) {
  Tables tables;
  for (const State& state : automaton.states) {
    const auto begin = static_cast<std::uint32_t>(tables.edges.size());
    tables.edges.insert(tables.edges.end(), state.edges.begin(), state.edges.end());
    const auto end = static_cast<std::uint32_t>(tables.edges.size());
    tables.states.push_back({begin, end, end, end, state.accepting});
  }
  tables.rules.push_back({Tables::RuleRow::Kind::automaton, automaton.states[0].accepting, 0, 0, 1, 1});
  std::iota(tables.byte_class.begin(), tables.byte_class.end(), std::uint8_t{0});
  tables.classes = 256;
  return tables;
}

std::shared_ptr<const Vocabulary> random_words(std::mt19937& random) {
  std::vector<std::string> words(300);
  for (std::size_t i = 0; i < words.size(); ++i)
    for (std::size_t size = 2 + i % 11; words[i].size() < size;) words[i] += kLetters[random() % 3];
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  return testing::byte_vocabulary(words);
}

std::vector<std::uint32_t> open_nodes(const StateMask& mask) {
  std::vector<std::uint32_t> nodes;
  mask.for_open([](std::uint8_t byte) { return byte != 'b'; },
                [&](std::uint32_t node) { nodes.push_back(node); });
  std::ranges::sort(nodes);
  return nodes;
}

void expect_same(const StateMask& near, const StateMask& full, std::size_t words, std::mt19937& random) {
  EXPECT_EQ(near.may_end, full.may_end);
  EXPECT_EQ(open_nodes(near), open_nodes(full));
  std::vector<std::int32_t> expected(words), got(words, -1);
  full.copy_to(expected);
  near.copy_to(got);
  EXPECT_EQ(got, expected);
  for (std::int32_t& word : got) word = static_cast<std::int32_t>(random() & random());
  for (std::size_t i = 0; i < words; ++i) expected[i] |= got[i];
  near.add_to(got);
  EXPECT_EQ(got, expected);
}

TEST(DenseRule, MasksNearOthersAreThoseWalkedInFull) {
  std::mt19937 random(5);
  std::size_t partly = 0, wholly = 0;
  for (int round = 0; round < 60; ++round) {
    const auto vocabulary = random_words(random);
    const Tables tables = tables_of(random_pattern(random));
    const auto states = static_cast<StateId>(tables.states.size());
    const auto rule = DenseRule::make(tables, 0, states);
    ASSERT_TRUE(rule);
    for (int pair = 0; pair < 40; ++pair) {
      const auto state = static_cast<StateId>(random() % states),
                 other = static_cast<StateId>(random() % states);
      std::size_t cost = 0;
      const std::size_t alike = rule->alike(state, other, vocabulary->token_bytes_max(), kAll, cost);
      const auto full = rule->mask(tables, *vocabulary, state, kAll);
      const auto base = std::make_shared<const StateMask>(*rule->mask(tables, *vocabulary, other, kAll));
      for (const std::size_t known : {std::size_t{0}, alike}) {
        const auto near = rule->mask_near(tables, *vocabulary, state, other, base, known, kAll);
        ASSERT_TRUE(near);
        expect_same(*near, *full, vocabulary->mask_words(), random);
      }
      partly += alike > 0 && alike < vocabulary->token_bytes_max();
      wholly += state != other && alike == vocabulary->token_bytes_max();
      EXPECT_FALSE(rule->mask_near(tables, *vocabulary, state, other, base, 0, 2));
    }
  }
  EXPECT_GT(partly, 200u);
  EXPECT_GT(wholly, 0u);
}

// Computes DenseRule::alike() by trying all texts.
std::size_t alike_by_trying(const Automaton& automaton, StateId a, StateId b, std::size_t bytes_max) {
  const auto next = [&](StateId state, char letter) {
    if (state != kNoState)
      for (const Edge& edge : automaton.states[state].edges)
        if (edge.low == static_cast<std::uint8_t>(letter)) return edge.target;
    return kNoState;
  };
  std::vector<std::pair<StateId, StateId>> level{{a, b}};
  for (std::size_t length = 0; length < bytes_max; ++length) {
    std::vector<std::pair<StateId, StateId>> behind;
    for (const auto& [x, y] : level)
      for (const char letter : kLetters) {
        const StateId to_x = next(x, letter), to_y = next(y, letter);
        if (to_x == to_y) continue;
        if (to_x == kNoState || to_y == kNoState) return length;
        if (automaton.states[to_x].accepting != automaton.states[to_y].accepting) return length;
        behind.emplace_back(to_x, to_y);
      }
    level = std::move(behind);
  }
  return bytes_max;
}

TEST(DenseRule, AlikeForAsManyBytesAsTextsSay) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    const Automaton automaton = random_pattern(random);
    const Tables tables = tables_of(automaton);
    const auto states = static_cast<StateId>(tables.states.size());
    const auto rule = DenseRule::make(tables, 0, states);
    ASSERT_TRUE(rule);
    for (int pair = 0; pair < 20; ++pair) {
      const auto a = static_cast<StateId>(random() % states), b = static_cast<StateId>(random() % states);
      const std::size_t expected = alike_by_trying(automaton, a, b, 7);
      std::size_t cost = 0;
      EXPECT_EQ(rule->alike(a, b, 7, kAll, cost), expected);
      EXPECT_LE(rule->alike(a, b, 7, 0, cost), expected) << "found out in no time";
    }
  }
}

TEST(DenseRule, AllTokensBelowANodeAreTakenAtOnce) {
  std::vector<std::string> words;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b)
      for (char c = 'a'; c <= 'z'; ++c) words.push_back({a, b, c});
  const auto vocabulary = testing::byte_vocabulary(words);
  const auto letters = [](StateId target) { return Edge{Symbol::bytes, 'a', 'z', 0, target}; };
  const auto byte = [](char c, StateId target) {
    const auto b = static_cast<std::uint8_t>(c);
    return Edge{Symbol::bytes, b, b, 0, target};
  };
  Automaton loop, chain, escape, runs;
  loop.states = {{false, {{Symbol::bytes, '"', '"', 0, 1}, letters(0)}}, {true, {}}};
  for (StateId s = 0; s < 40; ++s)
    chain.states.push_back({false, {{Symbol::bytes, '"', '"', 0, 40}, letters(s + 1)}});
  chain.states.push_back({true, {}});
  // escape: only few characters can follow '\\'. halves: 'a' to 'm' lead to another state than 'n' to 'z'.
  escape.states = {{false, {byte('"', 1), byte('\\', 2), letters(0)}}, {true, {}}, {false, {byte('n', 0)}}};
  const auto halves = [](StateId first, StateId second) {
    return Edges{{Symbol::bytes, '"', '"', 0, 2},
                 {Symbol::bytes, 'a', 'm', 0, first},
                 {Symbol::bytes, 'n', 'z', 0, second}};
  };
  runs.states = {{false, halves(1, 0)}, {false, halves(1, 0)}, {true, {}}};
  for (const Automaton& automaton : {loop, chain, escape, runs}) {
    const Tables tables = tables_of(automaton);
    const auto rule = DenseRule::make(tables, 0, static_cast<StateId>(tables.states.size()));
    const auto mask = rule->mask(tables, *vocabulary, 0, kAll);
    ASSERT_TRUE(mask);
    EXPECT_LT(mask->visited, vocabulary->trie().size() / 8);
    std::vector<std::int32_t> bits(vocabulary->mask_words());
    mask->copy_to(bits);
    std::size_t count = 0;
    for (const std::int32_t word : bits)
      count += static_cast<std::size_t>(std::popcount(static_cast<std::uint32_t>(word)));
    std::size_t others = 0;  // bytes that are not letters
    for (const Edge& edge : automaton.states[0].edges) others += edge.low < 'a';
    EXPECT_EQ(count, words.size() + 26 + others);
  }
}

// The tokens have characters of several bytes, end or begin inside characters, or are not UTF-8.
TEST(DenseRule, MasksOfAnyCharactersAreThoseOfTryingEachToken) {
  const auto vocabulary = testing::byte_vocabulary({"ab",
                                                    "abc",
                                                    "a\"",
                                                    "a1",
                                                    "a b",
                                                    "\xC3\xA9",
                                                    "a\xC3\xA9",
                                                    "\xC3\xA9\xC3",
                                                    "\xA9z",
                                                    "\xC3z",
                                                    "\xC3\xA9\xC3\xA8",
                                                    "\xE6\x97\xA5",
                                                    "\xE6\x97\xA5\xE6\x9C\xAC",
                                                    "\xE6\x97",
                                                    "\xA5\"",
                                                    "\xED\xA0\x80",
                                                    "\xED\x9F\xBF",
                                                    "\xE0\x80\x80",
                                                    "\xF0\x9F\x98\x80",
                                                    "\xF0\x9F\x98\x80\"",
                                                    "\xF0\x8F\x98\x80",
                                                    "\xC0\x80",
                                                    "\xFF",
                                                    "a\xFF",
                                                    "  ",
                                                    "\n ",
                                                    "a\n",
                                                    "x",
                                                    "axx",
                                                    "a  b",
                                                    "a \" b",
                                                    "b\xC2\xA0",
                                                    "b\xC2\xB7z",
                                                    "b\xE2\x80\x83z",
                                                    "b\xE2\x82\xAC",
                                                    "b\xE2\x80",
                                                    "b\xE2",
                                                    "\xE3\x80\x80\xE3\x80\x81",
                                                    "\xE3\x81\x82\xE3\x81\x84\""});
  for (const std::string_view pattern :
       {R"("[^x]*")", R"("[^é]*")", R"("[^日]*")", R"("[^x]{2,4}")", R"("(?:[^x]+ )*[^x]+")", R"("[a-z ]*")",
        ".*", R"(".*"!)", R"("\S+(?: \S+)*")", R"("\s*[a-z]+x[^x]*")", R"("[^x]{2,90}")",
        R"("[^x]{1,90}[xa]+")", R"("(?:ab|é){1,90}b")", R"(.{1,90}"[a-z日]*)",
        R"("[^ ]{60,90}[^x]{60,90}")"}) {
    const auto grammar = CompiledGrammar::compile(regex_grammar(pattern).value(), vocabulary);
    ASSERT_TRUE(grammar);
    for (const std::string_view text :
         {"", "\"", "\"a", "\"\xC3", "\"\xE6\x97", "\"a b", "\"ab", "\"abx", "a"}) {
      Matcher matcher(*grammar);
      if (!testing::feed(matcher, text)) continue;
      EXPECT_EQ(testing::mask_of(matcher, *vocabulary), testing::brute_force_mask(matcher, *vocabulary))
          << pattern << " after " << text;
    }
  }
}

}  // namespace
}  // namespace octavo::grammar
