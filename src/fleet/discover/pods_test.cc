#include "fleet/discover/pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// Returns a pod, with `part` of its JSON replaced by `other`.
json::object pod(std::string_view part = "", std::string_view other = "") {
  std::string text = R"({"metadata": {"name": "p", "labels": {"app": "vllm", "llm-d.ai/role": "decode"},
      "annotations": {"sglang.ai/bootstrap-port": "8998"}},
      "status": {"phase": "Running", "podIP": "10.0.0.7",
      "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}]}})";
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  text.replace(at, part.size(), other);
  return json::parse(text).get_object();
}

TEST(LabelSelector, IsAListOfLabels) {
  EXPECT_EQ(*parse_label_selector("app=vllm,llm-d.ai/role=decode", "x"),
            (LabelSelector{{"app", "vllm"}, {"llm-d.ai/role", "decode"}}));
  EXPECT_EQ(selector_query({{"app", "vllm"}, {"llm-d.ai/role", "decode"}}),
            "labelSelector=app%3Dvllm%2Cllm-d.ai%2Frole%3Ddecode");
  EXPECT_EQ(selector_query({}), "");
  for (const char* wrong : {"app", "=x", "app=a b", "app in (a)", ",", "app!=x"})
    EXPECT_EQ(parse_label_selector(wrong, "selector").error().field, "selector") << wrong;
  EXPECT_TRUE(selects({{"a", "1"}}, {{"a", "1"}, {"b", "2"}}));
  EXPECT_FALSE(selects({{"a", "1"}}, {{"a", "2"}}));
  EXPECT_FALSE(selects({{"a", ""}}, {{"b", ""}}));
}

TEST(Pods, AReadyOneIsAnEndpointForEachPort) {
  const auto ready = ready_pod(pod());
  ASSERT_TRUE(ready);
  const auto endpoints = endpoints_of(*ready, {8000, 8001});
  ASSERT_EQ(endpoints.size(), 2U);
  EXPECT_EQ(endpoints[1].name, "10.0.0.7:8001");
  EXPECT_EQ(endpoints[1].url, "http://10.0.0.7:8001");
  EXPECT_EQ(endpoints[1].role, Role::decode);
  EXPECT_EQ(endpoints[1].labels.at("app"), "vllm");
  EXPECT_EQ(endpoints[1].bootstrap_port, 8998);
  EXPECT_EQ(endpoints[0].rank, 0);
  EXPECT_EQ(endpoints[1].rank, 1);
  EXPECT_EQ(endpoints_of({.ip = "fd00::1"}, {80}).at(0).name, "[fd00::1]:80");
  EXPECT_TRUE(endpoints_of({.ip = "no address"}, {80}).empty());
}

TEST(Pods, OthersAreNone) {
  const auto ready = [](std::string_view part, std::string_view other) {
    return ready_pod(pod(part, other)).has_value();
  };
  EXPECT_TRUE(ready("8998", "none"));
  EXPECT_FALSE(ready("Running", "Succeeded"));
  EXPECT_FALSE(ready("10.0.0.7", ""));
  EXPECT_FALSE(ready("\"10.0.0.7\"", "7"));
  EXPECT_FALSE(ready(R"("Ready", "status": "True")", R"("Ready", "status": "False")"));
  EXPECT_FALSE(ready("conditions", "other"));
  EXPECT_FALSE(ready(R"("name": "p")", R"("name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z")"));
  EXPECT_FALSE(ready_pod({}).has_value());
}

}  // namespace
}  // namespace octavo::fleet
