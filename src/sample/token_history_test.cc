#include "sample/token_history.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace octavo {
namespace {

TEST(TokenHistory, CountsLikeAMap) {
  std::mt19937 rng(1);
  TokenHistory history;
  std::map<TokenId, int> expected;
  for (int i = 0; i < 20000; ++i) {
    const auto id = static_cast<TokenId>(rng() % 5000 * (rng() % 2 == 0 ? 1 : 64));
    if (rng() % 4 == 0) {
      history.add_prompt(id);
      expected[id] += 0;
    } else {
      history.add_output(id);
      expected[id] += 1;
    }
  }
  std::map<TokenId, int> counted;
  for (std::size_t i = 0; i < history.ids().size(); ++i) {
    EXPECT_FALSE(counted.contains(history.ids()[i]));
    counted[history.ids()[i]] = history.counts()[i];
  }
  EXPECT_EQ(counted, expected);
}

}  // namespace
}  // namespace octavo
