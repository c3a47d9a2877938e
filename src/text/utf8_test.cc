#include "text/utf8.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Utf8, FindsTheFirstInvalidByte) {
  EXPECT_EQ(invalid_utf8_at(""), std::nullopt);
  EXPECT_EQ(invalid_utf8_at("aé你👩\uFFFF\U0010FFFF"), std::nullopt);
  EXPECT_EQ(invalid_utf8_at("a\x80"), 1u);
  EXPECT_EQ(invalid_utf8_at("\xC0\x80"), 0u);          // overlong
  EXPECT_EQ(invalid_utf8_at("\xE0\x9F\xBF"), 0u);      // overlong
  EXPECT_EQ(invalid_utf8_at("x\xED\xA0\x80"), 1u);     // surrogate
  EXPECT_EQ(invalid_utf8_at("\xF4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(invalid_utf8_at("ab\xE4\xBD"), 2u);        // incomplete
}

TEST(Utf8, SeesWhatMayStillBeCompleted) {
  EXPECT_EQ(incomplete_utf8_tail(""), 0u);
  EXPECT_EQ(incomplete_utf8_tail("abc"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("abc\xE4"), 1u);
  EXPECT_EQ(incomplete_utf8_tail("abc\xE4\xBD"), 2u);
  EXPECT_EQ(incomplete_utf8_tail("abc\xE4\xBD\xA0"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xF0\x9F\x91"), 3u);
  EXPECT_EQ(incomplete_utf8_tail("\xE0\x9F"), 0u);  // not the beginning of a valid code point
  EXPECT_EQ(incomplete_utf8_tail("\xFF"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\x80\x80"), 0u);
}

TEST(Utf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(replace_invalid_utf8("aé"), "aé");
  // Example from the Unicode standard, table 3-8.
  EXPECT_EQ(replace_invalid_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFD"
            "b\uFFFD"
            "c\uFFFD\uFFFD"
            "d");
  EXPECT_EQ(replace_invalid_utf8("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("x\xE4\xBD"), "x\uFFFD");
}

}  // namespace
}  // namespace octavo
