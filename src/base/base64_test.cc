#include "base/base64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using testing::HasSubstr;

TEST(Base64, IsReadWithAndWithoutPadding) {
  EXPECT_EQ(decode_base64("").value(), "");
  EXPECT_EQ(decode_base64("TQ==").value(), "M");
  EXPECT_EQ(decode_base64("TWE=").value(), "Ma");
  EXPECT_EQ(decode_base64("TWFu").value(), "Man");
  EXPECT_EQ(decode_base64("TWE").value(), "Ma");
  EXPECT_EQ(decode_base64("TW\r\nFu\n").value(), "Man");
  EXPECT_EQ(decode_base64("TQ=\n=\n").value(), "M");
  EXPECT_THAT(decode_base64("TWFu\nT").error().message, HasSubstr("5 characters"));
  EXPECT_THAT(decode_base64("TW#u").error().message, HasSubstr("character 2"));
  EXPECT_THAT(decode_base64("TWFuT").error().message, HasSubstr("length is wrong"));
}

TEST(Base64, IsWrittenWithPadding) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("M"), "TQ==");
  EXPECT_EQ(encode_base64("Ma"), "TWE=");
  EXPECT_EQ(encode_base64("Man"), "TWFu");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(decode_base64(encode_base64(all)).value(), all);
}

}  // namespace
}  // namespace octavo
