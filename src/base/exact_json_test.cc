#include "base/exact_json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octavo {
namespace {

namespace json = boost::json;

json::value parsed(std::string_view text) {
  boost::system::error_code error;
  json::value value = parse_exact_json(text, error);
  EXPECT_FALSE(error) << text << ": " << error.message();
  return value;
}

TEST(ExactJson, NumbersKeepTheirValue) {
  for (const char* number :
       {"0", "7", "-7", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "18446744073709551616",
        "-9223372036854775809", "100000000000000000000", "123456789012345678901234567890", "0.1", "1.0", "-0.0", "2.5",
        "0.1000000000000000055511151231257827", "1e400", "-1e400", "1E-400", "1.7976931348623157e+308",
        "99999999999999999999.5", "12345678901234567890123456789012345678901234567890"}) {
    const std::string list = std::string("[") + number + ",{\"a\":" + number + "}]";
    EXPECT_EQ(exact_json_text(parsed(list)), list);
  }
}

TEST(ExactJson, NumbersThatFitAreNumbers) {
  EXPECT_EQ(parsed("18446744073709551615").as_uint64(), 18446744073709551615u);
  EXPECT_EQ(parsed("-0").as_int64(), 0);
  EXPECT_EQ(parsed("1.50").as_double(), 1.5);
  EXPECT_EQ(parsed("150e-2").as_double(), 1.5);
  EXPECT_EQ(parsed("0.00").as_double(), 0);
  EXPECT_EQ(exact_json_text(parsed("1e20")), "1e+20");
}

TEST(ExactJson, LongNumbersAreFound) {
  const json::value value = parsed("18446744073709551616");
  ASSERT_NE(long_number(value), nullptr);
  EXPECT_EQ(*long_number(value), "18446744073709551616");
  EXPECT_EQ(rounded_number(value), 0x1p64);
  EXPECT_EQ(rounded_number(parsed("1e400")), HUGE_VAL);
  EXPECT_EQ(rounded_number(parsed("3")), 3);
  EXPECT_EQ(rounded_number(parsed("{}")), std::nullopt);
  EXPECT_EQ(long_number(parsed(R"({"a":"1"})")), nullptr);
  const json::value copy(value);  // NOLINT: a copy keeps the text
  EXPECT_EQ(exact_json_text(copy), "18446744073709551616");
}

TEST(ExactJson, NobodyElseWritesTheReservedKey) {
  for (const char* text : {"{\"\\u0001number\":\"1]\"}", "[{\"a\":1,\"\\u0001number\":\"1\"}]"}) {
    boost::system::error_code error;
    parse_exact_json(text, error);
    EXPECT_TRUE(error) << text;
  }
}

TEST(ExactJson, TextAndNesting) {
  constexpr std::string_view kText = R"({"a\"b":[true,null,"ü\n",{}],"c":[]})";
  EXPECT_EQ(exact_json_text(parsed(kText)), kText);
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(exact_json_text(parsed(nested(kExactJsonDepthMax))), nested(kExactJsonDepthMax));
  boost::system::error_code error;
  parse_exact_json(nested(kExactJsonDepthMax + 1), error);
  EXPECT_EQ(error, json::error::too_deep);
  for (const char* text : {"", "{", "[1,]", "1 2", "01", "{\"a\"}", "nul", "\"\\x\""}) {
    error.clear();
    parse_exact_json(text, error);
    EXPECT_TRUE(error) << text;
  }
}

TEST(ExactJson, ReadsTheValueAtTheStart) {
  boost::system::error_code error;
  std::size_t taken = 0;
  EXPECT_EQ(exact_json_text(parse_exact_json("{\"a\":1} x", error, taken)), "{\"a\":1}");
  EXPECT_FALSE(error);
  EXPECT_LE(taken, 8u);
}

}  // namespace
}  // namespace octavo
