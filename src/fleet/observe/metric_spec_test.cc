#include "fleet/observe/metric_spec.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

bool matches(std::string_view spec, std::string_view line) {
  const auto parsed = parse_metric_spec(spec, "spec");
  EXPECT_TRUE(parsed) << spec;
  return parsed && parsed->matches(*read_metric(line));
}

TEST(MetricSpec, NamesASeries) {
  EXPECT_TRUE(matches("engine:waiting", "engine:waiting 3"));
  EXPECT_TRUE(matches(" waiting { kind = a , pool=\"b c\" } ", "waiting{x=\"1\",pool=\"b c\",kind=\"a\"} 3"));
  EXPECT_TRUE(matches("waiting{}", "waiting{kind=\"a\"} 3"));
  EXPECT_FALSE(matches("waiting{kind=a}", "waiting{kind=\"b\"} 3"));
  EXPECT_FALSE(matches("waiting{kind=a}", "waiting 3"));
  EXPECT_FALSE(matches("waiting", "waiting_total 3"));
}

TEST(MetricSpec, MistakesAreTold) {
  for (const char* text : {"", " ", "1a", "a b", "a{", "a}", "a{b}", "a{=c}", "a{b=\"c}", "a{b={}}", "a{b=c}d"}) {
    const auto parsed = parse_metric_spec(text, "spec");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().field, "spec");
  }
}

}  // namespace
}  // namespace octavo::fleet
