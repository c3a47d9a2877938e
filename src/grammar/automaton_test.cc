#include "grammar/automaton.h"

#include <gtest/gtest.h>

#include <random>

#include "grammar/text_length.h"

namespace octavo::grammar {
namespace {

constexpr std::string_view kLetters = "abc";

Automaton random_automaton(std::mt19937& random, std::size_t states) {
  Automaton automaton;
  for (std::size_t s = 0; s < states; ++s) {
    State& state = automaton.states.emplace_back(State{random() % 3 == 0, {}});
    for (const char c : kLetters) {
      const auto byte = static_cast<std::uint8_t>(c);
      if (random() % 4 != 0)
        state.edges.push_back({Symbol::bytes, byte, byte, 0, static_cast<StateId>(random() % states)});
    }
  }
  return automaton;
}

std::vector<std::string> texts(std::size_t length) {
  std::vector<std::string> all{""};
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].size() < length)
      for (const char c : kLetters) all.push_back(all[i] + c);
  return all;
}

// Returns the number of different states by comparing all pairs. Does not count states that lead to no
// accepting state.
std::size_t distinct_states(const Automaton& automaton) {
  const std::size_t n = automaton.states.size(), dead = n;
  const auto next = [&](std::size_t state, char letter) -> std::size_t {
    if (state != dead)
      for (const Edge& edge : automaton.states[state].edges)
        if (edge.low <= static_cast<std::uint8_t>(letter) && static_cast<std::uint8_t>(letter) <= edge.high)
          return edge.target;
    return dead;
  };
  std::vector<std::vector<bool>> apart(n + 1, std::vector<bool>(n + 1, false));
  const auto accepts = [&](std::size_t state) { return state != dead && automaton.states[state].accepting; };
  for (std::size_t a = 0; a <= n; ++a)
    for (std::size_t b = 0; b <= n; ++b) apart[a][b] = accepts(a) != accepts(b);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t a = 0; a <= n; ++a)
      for (std::size_t b = 0; b <= n; ++b)
        for (const char c : kLetters)
          if (!apart[a][b] && apart[next(a, c)][next(b, c)]) apart[a][b] = more = true;
  }
  std::size_t count = 0;
  for (std::size_t a = 0; a < n; ++a) {
    bool first = apart[a][dead];
    for (std::size_t b = 0; b < a; ++b) first = first && apart[a][b];
    count += first;
  }
  return count;
}

TEST(Automaton, MinimizedIsSmallestAndTheSame) {
  std::mt19937 random(1);
  const std::vector<std::string> all = texts(7);
  for (int round = 0; round < 300; ++round) {
    const Automaton whole = trim(random_automaton(random, 2 + random() % 12));
    const Automaton minimal = minimize(whole);
    for (const std::string& text : all) ASSERT_EQ(matches(whole, text), matches(minimal, text)) << text;
    if (!is_empty(whole)) {
      ASSERT_EQ(minimal.states.size(), distinct_states(whole));
    }
  }
}

// A cycle of 60,000 states. If refinement needed one round for each state, minimization would take minutes.
TEST(Automaton, LongChainsBehindACycleAreMinimized) {
  constexpr StateId kStates = 60'000;
  Automaton chain;
  for (StateId s = 0; s < kStates; ++s) {
    const auto state = [&](StateId to) { return Edge{Symbol::bytes, 'a', 'a', 0, to}; };
    chain.states.push_back({s % (kStates / 2) == 0, {state((s + 1) % kStates)}});
  }
  EXPECT_EQ(minimize(chain).states.size(), kStates / 2);
}

TEST(Automaton, LengthsAreThoseAskedFor) {
  std::mt19937 random(2);
  const std::vector<std::string> all = texts(7);
  for (int round = 0; round < 200; ++round) {
    const Automaton whole = trim(random_automaton(random, 2 + random() % 8));
    const auto min = static_cast<std::uint32_t>(random() % 4);
    const std::uint32_t max = random() % 3 == 0 ? kUnbounded : min + static_cast<std::uint32_t>(random() % 4);
    const auto cut = of_length(whole, {min, max}, 1000);
    ASSERT_TRUE(cut);
    for (const std::string& text : all)
      ASSERT_EQ(matches(*cut, text), matches(whole, text) && text.size() >= min && text.size() <= max)
          << text;
    EXPECT_FALSE(of_length(whole, {min, max}, 0));
  }
}

TEST(Automaton, CharactersOfSeveralBytesCountOnce) {
  // The automaton accepts "é" and "a", any number of times.
  Automaton whole;
  whole.states = {{true, {{Symbol::bytes, 'a', 'a', 0, 0}, {Symbol::bytes, 0xC3, 0xC3, 0, 1}}},
                  {false, {{Symbol::bytes, 0xA9, 0xA9, 0, 0}}}};
  const auto cut = of_length(whole, {2, 3}, 1000);
  ASSERT_TRUE(cut);
  for (const std::string_view text : {"aa", "éa", "ééé"}) EXPECT_TRUE(matches(*cut, text)) << text;
  for (const std::string_view text : {"é", "éééa"}) EXPECT_FALSE(matches(*cut, text)) << text;
}

}  // namespace
}  // namespace octavo::grammar
