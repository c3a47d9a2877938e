#include "fleet/decide/parameters.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace octavo::fleet {
namespace {

struct Read {
  std::int64_t count = 1;
  double share = 0.5;
  bool on = false;
  std::string name = "n";
  std::int64_t ttl_us = 5;
  Result<> result;
};

Read read(std::string_view json) {
  const boost::json::value values = boost::json::parse(json);
  Parameters parameters(values.as_object(), "p");
  Read r;
  parameters.read("count", r.count, 1, 10);
  parameters.read("share", r.share, 0, 1);
  parameters.read("on", r.on);
  parameters.read("name", r.name);
  parameters.read_duration("ttl", r.ttl_us);
  r.result = parameters.done();
  return r;
}

TEST(Parameters, AbsentFieldsKeepTheirDefaults) {
  const Read r = read("{}");
  ASSERT_TRUE(r.result);
  EXPECT_EQ(r.count, 1);
  EXPECT_EQ(r.ttl_us, 5);
}

TEST(Parameters, ReadsEachType) {
  const Read r = read(R"({"count": 3, "share": 1, "on": true, "name": "x", "ttl": "1.5s"})");
  ASSERT_TRUE(r.result) << r.result.error().message;
  EXPECT_EQ(r.count, 3);
  EXPECT_EQ(r.share, 1);
  EXPECT_TRUE(r.on);
  EXPECT_EQ(r.name, "x");
  EXPECT_EQ(r.ttl_us, 1'500'000);
  EXPECT_EQ(read(R"({"ttl": "250ms"})").ttl_us, 250'000);
  EXPECT_EQ(read(R"({"ttl": "2m"})").ttl_us, 120'000'000);
  EXPECT_EQ(read(R"({"ttl": 3})").ttl_us, 3'000'000);
  EXPECT_EQ(read(R"({"ttl": "1m30s"})").ttl_us, 90'000'000);
  EXPECT_EQ(read(R"({"ttl": "0"})").ttl_us, 0);
}

TEST(Parameters, QuantitiesAreThoseOfKubernetes) {
  EXPECT_EQ(quantity("500"), 500U);
  EXPECT_EQ(quantity("1k"), 1000U);
  EXPECT_EQ(quantity("1e3"), 1000U);
  EXPECT_EQ(quantity("1.5Gi"), 3U << 29);
  EXPECT_EQ(quantity("2T"), 2'000'000'000'000U);
  EXPECT_EQ(quantity("1500m"), 2U) << "rounded up";
  for (const char* wrong : {"", "k", "1X", "1 k", "-1", "1Ti1", "1e99", "2000Ti", "nan"})
    EXPECT_EQ(quantity(wrong), std::nullopt) << wrong;
  const boost::json::value values = boost::json::parse(R"({"a": "1k", "b": 7, "c": "2k", "d": true, "e": -1})");
  std::uint64_t value = 0;
  Parameters good(values.as_object(), "p");
  good.read_quantity("a", value, 1000);
  EXPECT_EQ(value, 1000U);
  good.read_quantity("b", value, 1000);
  EXPECT_EQ(value, 7U);
  for (const char* field : {"c", "d", "e"}) {
    Parameters bad(values.as_object(), "p");
    bad.read_quantity(field, value, 1000);
    EXPECT_EQ(bad.done().error().field, std::string("p.") + field);
  }
}

TEST(Parameters, MistakesNameTheField) {
  for (const auto& [json, field] :
       std::vector<std::pair<std::string_view, std::string_view>>{{R"({"count": 0})", "p.count"},
                                                                  {R"({"count": 1.5})", "p.count"},
                                                                  {R"({"count": "3"})", "p.count"},
                                                                  {R"({"count": 1e300})", "p.count"},
                                                                  {R"({"share": 1.1})", "p.share"},
                                                                  {R"({"on": 1})", "p.on"},
                                                                  {R"({"name": true})", "p.name"},
                                                                  {R"({"ttl": "5 parsecs"})", "p.ttl"},
                                                                  {R"({"ttl": "-1s"})", "p.ttl"},
                                                                  {R"({"ttl": "1e99h"})", "p.ttl"},
                                                                  {R"({"thresholdd": 1})", "p.thresholdd"},
                                                                  {R"({"ttl": []})", "p.ttl"}}) {
    const Read r = read(json);
    ASSERT_FALSE(r.result) << json;
    EXPECT_EQ(r.result.error().field, field) << json;
  }
}

}  // namespace
}  // namespace octavo::fleet
