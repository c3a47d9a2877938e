#include "openai/request_fields.h"

#include <gmock/gmock.h>

namespace octavo::openai {
namespace {

using ::testing::HasSubstr;

boost::json::object parsed(std::string_view text) { return parse_body(text).value(); }

TEST(ParseBody, RefusesWhatIsNotOneObject) {
  for (const std::string_view bad :
       {"", " ", "[]", "1", "null", "{", "{\"a\":1}x", "{\"a\":1}{}", "{'a':1}", "{\"a\":NaN}", "{\"a\":01}",
        "{\"a\":\"\xff\"}", "{\"a\":\"\\ud800\"}"}) {
    const auto body = parse_body(bad);
    ASSERT_FALSE(body.has_value()) << bad;
    EXPECT_EQ(body.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_TRUE(parse_body(" {\"a\": 1} \n").has_value());
  EXPECT_TRUE(parse_body("\xef\xbb\xbf{}").has_value()) << "a byte order mark";
  EXPECT_TRUE(parse_body(std::string_view("{\0}\0", 4)).has_value()) << "UTF-16";
}

TEST(ParseBody, LimitsDepth) {
  const auto nested = [](std::size_t depth) {
    return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_TRUE(parse_body(nested(kJsonDepthMax)).has_value());
  EXPECT_FALSE(parse_body(nested(kJsonDepthMax + 1)).has_value());
  EXPECT_FALSE(parse_body(std::string(1'000'000, '[')).has_value());
  EXPECT_FALSE(parse_body("{\"a\":" + std::string(1'000'000, '[')).has_value());
}

TEST(Fields, IntegersAreNeverNarrowed) {
  for (const std::string_view bad :
       {"2147483648", "-2147483649", "9007199254740992", "9223372036854775807", "18446744073709551615",
        "1e309", "-1e309", "1.5", "\"1.5\"", "true", "[]", "{}"}) {
    const auto body = parsed("{\"a\":" + std::string(bad) + "}");
    Fields fields(body);
    int value = 7;
    const auto read = fields.integer("a", value);
    ASSERT_FALSE(read.has_value()) << bad;
    EXPECT_EQ(read.error().field, "a");
    const bool fraction = bad.contains('.') || std::string_view("t[{").contains(bad[0]);
    EXPECT_THAT(read.error().message, HasSubstr(fraction ? "must be a whole number, got "
                                                         : "must be in [-2147483648, 2147483647], got "));
    EXPECT_EQ(value, 7);
  }
  const auto body = parsed(R"({"a": 16, "b": 16.0, "c": null})");
  Fields fields(body);
  int a = 0, b = 0, c = 5;
  EXPECT_TRUE(fields.integer("a", a).has_value());
  EXPECT_TRUE(fields.integer("b", b).has_value());
  EXPECT_TRUE(fields.integer("c", c).has_value());
  EXPECT_TRUE(fields.integer("d", c).has_value());
  EXPECT_EQ(a, 16);
  EXPECT_EQ(b, 16);
  EXPECT_EQ(c, 5);
}

TEST(Fields, NumbersAreFinite) {
  for (const std::string_view bad : {"1e309", "-1e309", "\"1x\"", "\"\"", "true", "[1]"}) {
    const auto body = parsed("{\"a\":" + std::string(bad) + "}");
    Fields fields(body, "outer.");
    double value = 0;
    const auto read = fields.number("a", value);
    ASSERT_FALSE(read.has_value()) << bad;
    EXPECT_EQ(read.error().field, "outer.a");
  }
}

TEST(Fields, TextsAndLists) {
  const auto body =
      parsed(R"({"one": "x", "many": ["x", "y"], "mixed": ["x", 1], "ids": [1, 2], "big": [4294967296]})");
  Fields fields(body);
  std::vector<std::string> texts;
  EXPECT_TRUE(fields.one_or_more_texts("one", texts).has_value());
  EXPECT_EQ(texts, (std::vector<std::string>{"x"}));
  EXPECT_TRUE(fields.one_or_more_texts("many", texts).has_value());
  EXPECT_EQ(texts, (std::vector<std::string>{"x", "y"}));
  EXPECT_FALSE(fields.texts("mixed", texts).has_value());
  EXPECT_FALSE(fields.texts("one", texts).has_value());
  std::vector<std::int32_t> ids;
  EXPECT_TRUE(fields.integers("ids", ids).has_value());
  EXPECT_FALSE(fields.integers("big", ids).has_value());
}

TEST(Fields, RefusesAndReportsUnread) {
  const auto body = parsed(R"({"a": false, "b": true, "c": null, "d": 1})");
  Fields fields(body);
  EXPECT_TRUE(fields.refuse("a", "no", false).has_value());
  EXPECT_EQ(fields.refuse("b", "no", false).error().field, "b");
  EXPECT_TRUE(fields.refuse("c", "no").has_value());
  EXPECT_EQ(fields.unread(), (std::vector<std::string>{"d"}));
}

}  // namespace
}  // namespace octavo::openai
