#include "traffic/knob_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace octavo::traffic {
namespace {

using Setting = KnobSearch::Setting;

std::vector<Knob> knobs() {
  return {
      {.flag = "--a",
       .values = {"1", "2", "4", "8", "16", "32", "64"},
       .usual = 3,
       .ordered = true,
       .coarse = {0, 3, 6}},
      {.flag = "--b", .values = {"1", "2", "4", "8", "16"}, .usual = 2, .ordered = true, .coarse = {0, 2, 4}},
      {.flag = "--c", .values = {"", "x", "y"}}};
}

struct Found {
  Setting best;
  int tried = 0;
};

Found search(const std::function<double(const Setting&)>& score) {
  KnobSearch search(knobs());
  Found found;
  std::set<Setting> seen;
  while (const auto setting = search.next()) {
    EXPECT_TRUE(seen.insert(*setting).second) << "a setting comes once";
    search.add(score(*setting));
    ++found.tried;
  }
  found.best = search.best();
  return found;
}

TEST(KnobSearch, TheUsualSettingComesFirstThenTheGrid) {
  KnobSearch search(knobs());
  EXPECT_EQ(search.next(), (Setting{3, 2, 0}));
  for (int i = 0; i < 8; ++i) {
    search.add(1);
    const Setting setting = *search.next();
    EXPECT_EQ(setting[0] % 3, 0u);
    EXPECT_EQ(setting[1] % 2, 0u);
    EXPECT_EQ(setting[2], 0u);
  }
  EXPECT_EQ(search.grid().size(), 9u);
}

TEST(KnobSearch, RefinementFindsThePeakBetweenTheGridsPoints) {
  for (std::size_t a = 0; a < 7; ++a)
    for (std::size_t b = 0; b < 5; ++b)
      for (std::size_t c = 0; c < 3; ++c) {
        const Setting peak{a, b, c};
        const Found found = search([&](const Setting& s) {
          double away = 0;
          for (std::size_t k = 0; k < 3; ++k)
            away += std::abs(static_cast<double>(s[k]) - static_cast<double>(peak[k]));
          return 100 / (1 + away);
        });
        EXPECT_EQ(found.best, peak);
        EXPECT_LT(found.tried, 40) << "of 105 settings";
      }
}

TEST(KnobSearch, EqualScoresEndIt) {
  const Found found = search([](const Setting&) { return 7.0; });
  EXPECT_EQ(found.best, (Setting{3, 2, 0}));
  EXPECT_EQ(found.tried, 9 + 2 + 2 + 2);
}

TEST(KnobSearch, AScoreOfZeroIsNeverTheBest) {
  KnobSearch search(knobs());
  while (search.next()) search.add(0);
  EXPECT_EQ(search.best_score(), 0);
}

}  // namespace
}  // namespace octavo::traffic
