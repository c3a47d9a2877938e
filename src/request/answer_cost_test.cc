#include "request/answer_cost.h"

#include <gtest/gtest.h>

#include <set>

namespace octavo {
namespace {

TEST(AnswerCost, EachUnitHasItsOwnName) {
  std::set<std::string_view> names, metrics;
  for (const CostField& field : kCostFields) {
    names.insert(field.name);
    metrics.insert(field.metric);
    EXPECT_FALSE(field.help.empty());
  }
  EXPECT_EQ(names.size(), kCostUnits);
  EXPECT_EQ(metrics.size(), kCostUnits);
  EXPECT_EQ(kCostFields[static_cast<std::size_t>(CostUnit::energy_microjoules)].name, "energy_microjoules");
}

TEST(AnswerCost, TextsAreReadBack) {
  AnswerCost cost;
  EXPECT_EQ(cost_text(cost), "output_tokens=0");
  EXPECT_EQ(parse_cost_text("output_tokens=0"), cost);
  for (std::size_t i = 0; i < kCostUnits; ++i) cost.units[i] = static_cast<std::int64_t>(i * 1'000'000'007);
  EXPECT_EQ(parse_cost_text(cost_text(cost)), cost);
}

TEST(AnswerCost, UnknownUnitsAreIgnoredAndOtherFormsRefused) {
  AnswerCost three;
  three[CostUnit::output_tokens] = 3;
  EXPECT_EQ(parse_cost_text("output_tokens=3,  water_litres=4"), three);
  EXPECT_TRUE(parse_cost_text("output_tokens=9007199254740992"));
  for (const char* bad : {"x", "output_tokens=", "output_tokens=-1", "output_tokens=1.5", "output_tokens=1;",
                          "=", "output_tokens=99999999999999999999", "output_tokens=9007199254740993",
                          "water_litres=9223372036854775807", "output_tokens=1, output_tokens=2"})
    EXPECT_EQ(parse_cost_text(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace octavo
