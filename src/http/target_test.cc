#include "http/target.h"

#include <gtest/gtest.h>

namespace octavo::http {
namespace {

TEST(Target, TakesTheFormsOfTheStandard) {
  const auto path = [](std::string_view target) { return parse_target(target).value().path; };
  EXPECT_EQ(path("/v1/models"), "/v1/models");
  EXPECT_EQ(path("/"), "/");
  EXPECT_EQ(path("/v1/models/"), "/v1/models/");
  EXPECT_EQ(path("/%76%31/models"), "/v1/models");
  EXPECT_EQ(path("/v1/models/org%2Fname"), "/v1/models/org/name");
  EXPECT_EQ(path("/v1/models/%2Fdata%2Fname"), "/v1/models//data/name");
  EXPECT_EQ(path("http://host:80/v1/models?x=1"), "/v1/models");
  EXPECT_EQ(path("https://host"), "/");
  EXPECT_EQ(path("*"), "*");
  EXPECT_EQ(parse_target("/a?b=c?d").value().query, "b=c?d");
  EXPECT_EQ(parse_target("http://host/a%2Fb%3F?c").value().encoded, "/a%2Fb%3F");
  EXPECT_EQ(parse_target("https://host").value().encoded, "/");
}

TEST(Target, RefusesWhatTwoReadersCouldTakeDifferently) {
  for (const std::string_view bad :
       {"", "v1/models", "//v1/models", "/v1//models", "/v1/../health", "/./health", "/..", "/%2e%2e/health",
        "/a%2F..%2Fhealth", "/a%", "/a%4", "/a%zz", "/a%00", "/a%0d%0ab", "/a\\b", "/a%5cb", "/a#b",
        "ftp://host/a", "host:443"})
    EXPECT_FALSE(parse_target(bad).has_value()) << bad;
}

TEST(Target, FindsQueryValues) {
  EXPECT_EQ(query_value("a=1&b=x%20y+z&a=2", "a"), "1");
  EXPECT_EQ(query_value("a=1&b=x%20y+z", "b"), "x y z");
  EXPECT_EQ(query_value("a", "a"), "");
  EXPECT_EQ(query_value("ab=1", "a"), std::nullopt);
  EXPECT_EQ(query_value("a=%g", "a"), std::nullopt);
}

TEST(PercentEncoded, IsUndoneByTheParser) {
  for (const std::string path : {"/v1/models/org/a model", "/%25?#\"<>", "/\xc3\xa9", "/a+b:c"})
    EXPECT_EQ(parse_target(percent_encoded(path))->path, path);
}

}  // namespace
}  // namespace octavo::http
