#include "weights/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace octavo {
namespace {

using testing::HasSubstr;

TEST(Json, ParsesATree) {
  const auto tree = parse_json(R"({"a":{"b":[1,2.5,null]},"c":{"b":true}})", "f");
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->at("a").at("b").at(1).as_double(), 2.5);
}

TEST(Json, RefusesWhatIsAmbiguousOrTooMuch) {
  const auto error = [](std::string_view text, JsonLimits limits = {}) {
    const auto tree = parse_json(text, "f", limits);
    return tree ? "accepted" : tree.error().message;
  };
  EXPECT_THAT(error(R"({"a":1,"b":{"a":1},"a":2})"), HasSubstr("f: the key \"a\" occurs twice"));
  EXPECT_THAT(error(R"({"a":1,"\u0061":2})"), HasSubstr("occurs twice"));
  EXPECT_THAT(error(R"({"":1,"":2})"), HasSubstr("occurs twice"));
  EXPECT_THAT(error("{\"a\":"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("{} x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(error(R"({"a": NaN})"), HasSubstr("f: not valid JSON: JSON has no number NaN (byte 6)"));
  EXPECT_THAT(error(R"([1, -Infinity])"), HasSubstr("JSON has no number Infinity (byte 5)"));
  EXPECT_THAT(error(std::string(100, '[') + std::string(100, ']')), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("[1,2]", {.bytes = 4, .depth = 8}),
              HasSubstr("the JSON text has 5 bytes, but the limit is 4"));
}

}  // namespace
}  // namespace octavo
