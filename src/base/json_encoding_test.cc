#include "base/json_encoding.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// A character above U+FFFF becomes one unit here.
std::string encoded(std::u32string_view characters, std::size_t unit, bool big) {
  std::string out;
  for (const char32_t c : characters)
    for (std::size_t i = 0; i < unit; ++i)
      out += static_cast<char>(static_cast<std::uint32_t>(c) >> 8 * (big ? unit - 1 - i : i) & 0xFF);
  return out;
}

std::string utf8(std::string_view text) {
  std::string converted;
  const auto read = utf8_json(text, converted);
  return read ? std::string(*read) : "error: " + read.error().message;
}

// Expected values are from json.detect_encoding and bytes.decode(.., 'surrogatepass') of Python 3.13.
TEST(JsonEncoding, IsDetectedAsPythonDoes) {
  EXPECT_EQ(utf8(R"({"a": "ü"})"), R"({"a": "ü"})");
  EXPECT_EQ(utf8("\xEF\xBB\xBF{}"), "{}");
  EXPECT_EQ(utf8(""), "");
  EXPECT_EQ(utf8("1"), "1");
  for (const bool big : {false, true}) {
    for (const std::size_t unit : {2, 4}) {
      const std::string text = encoded(U"{\"ä€\": 1}", unit, big);
      EXPECT_EQ(utf8(text), "{\"ä€\": 1}") << unit << big;
      EXPECT_EQ(utf8(encoded(U"\uFEFF", unit, big) + text), "{\"ä€\": 1}") << unit << big;
    }
    EXPECT_EQ(utf8(encoded(U"1", 2, big)), "1");
    EXPECT_EQ(utf8(encoded(U"{\"ä\": [7]}", 2, big)), "{\"ä\": [7]}");
  }
  EXPECT_EQ(utf8(encoded(U"[\"\U0001F600\"]", 4, true)), "[\"\U0001F600\"]");
}

TEST(JsonEncoding, SurrogatesArePairedOrReplaced) {
  const auto units = [](std::initializer_list<char32_t> list) {
    return utf8(encoded(U"[\"" + std::u32string(list) + U"\"]", 2, false));
  };
  EXPECT_EQ(units({0xD83D, 0xDE00}), "[\"\U0001F600\"]");
  EXPECT_EQ(units({0xD83D}), "[\"\uFFFD\"]");
  EXPECT_EQ(units({0xDE00, 0xD83D}), "[\"\uFFFD\uFFFD\"]");
  EXPECT_EQ(units({0xD83D, 0xD83D, 0xDE00}), "[\"\uFFFD\U0001F600\"]");
}

TEST(JsonEncoding, BrokenTextIsAnErrorThatSaysWhy) {
  EXPECT_EQ(utf8(encoded(U"{\"a\": 1}", 2, false) + "x"),
            "error: the body is UTF-16 and has 17 bytes, but the number must be a multiple of 2");
  EXPECT_EQ(utf8(encoded(U"[1]", 4, false) + std::string("\0\0\x11\0", 4)),
            "error: the body is UTF-32 and contains U+110000, which is above U+10FFFF");
}

}  // namespace
}  // namespace octavo
