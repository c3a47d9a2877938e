#include "fleet/discover/request_rules.h"

#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

namespace octavo::fleet {
namespace {

boost::json::object object(const char* text) { return boost::json::parse(text).get_object(); }

TEST(RequestRules, AnObjectiveIsAPriority) {
  EXPECT_EQ(objective_priority(object(R"({"spec": {"priority": -3, "poolRef": {"name": "pool"}}})"), "pool"),
            -3);
  EXPECT_EQ(objective_priority(object(R"({"spec": {"poolRef": {"name": "pool"}}})"), "pool"), 0);
  EXPECT_EQ(objective_priority(object(R"({"spec": {"priority": 1, "poolRef": {"name": "other"}}})"), "pool"),
            std::nullopt);
  EXPECT_EQ(objective_priority(object(R"({"spec": {"priority": "1"}})"), "pool"), std::nullopt);
  EXPECT_EQ(objective_priority(object(R"({"spec": {"priority": 3000000000}})"), "pool"), std::nullopt);
}

TEST(RequestRules, ARewriteIsReadFromItsResource) {
  const auto rewrite = model_rewrite(
      object(
          R"({"metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"poolRef": {"name": "pool"},
                 "rules": [{"matches": [{"model": {"type": "Exact", "value": "m"}}],
                            "targets": [{"weight": 3, "modelRewrite": "a"}, {"modelRewrite": "b"}]}, {"targets": []}]}})"),
      "pool");
  ASSERT_TRUE(rewrite);
  EXPECT_EQ(rewrite->created, "2026-01-01T00:00:00Z");
  ASSERT_EQ(rewrite->rules.size(), 1U);
  EXPECT_EQ(rewrite->rules[0].models, std::vector<std::string>{"m"});
  EXPECT_EQ(rewrite->rules[0].targets.at(0).weight, 3);
  EXPECT_EQ(rewrite->rules[0].targets.at(1).weight, 1);
  EXPECT_FALSE(model_rewrite(object(R"({"spec": {"poolRef": {"name": "pool"}}})"), "pool"));
  EXPECT_FALSE(model_rewrite(
      object(R"({"spec": {"poolRef": {"name": "x"}, "rules": [{"targets": [{"modelRewrite": "b"}]}]}})"),
      "pool"));
}

TEST(RequestRules, ARuleForTheModelGoesFirstThenTheOlderOne) {
  const RequestRules rules{.rewrites = {{"1", "any", {{{}, {{"any", 1}}}}},
                                        {"2", "old", {{{"m"}, {{"old", 1}}}}},
                                        {"3", "new", {{{"m", "n"}, {{"new", 1}}}}}}};
  EXPECT_EQ(rules.rewritten("m", 0.5), "old");
  EXPECT_EQ(rules.rewritten("n", 0.5), "new");
  EXPECT_EQ(rules.rewritten("x", 0.5), "any");
  EXPECT_EQ(RequestRules().rewritten("x", 0.5), std::nullopt);
}

TEST(RequestRules, TargetsAreDrawnByWeight) {
  const auto draw = [](std::vector<ModelRewrite::Target> targets, double unit) {
    return *RequestRules{.rewrites = {{"1", "r", {{{}, std::move(targets)}}}}}.rewritten("m", unit);
  };
  EXPECT_EQ(draw({{"a", 3}, {"b", 1}}, 0.74), "a");
  EXPECT_EQ(draw({{"a", 3}, {"b", 1}}, 0.76), "b");
  EXPECT_EQ(draw({{"a", 0}, {"b", 0}}, 0.4), "a");
  EXPECT_EQ(draw({{"a", 0}, {"b", 0}}, 0.6), "b");
  EXPECT_EQ(draw({{"a", 0}, {"b", 1}}, 0.0), "b");
}

}  // namespace
}  // namespace octavo::fleet
