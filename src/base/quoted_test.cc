#include "base/quoted.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Quoted, EscapesWhatIsNoPlainText) {
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted("a b"), "\"a b\"");
  EXPECT_EQ(quoted("a\"\\\n"), R"("a\"\\\x0a")");
  EXPECT_EQ(quoted("h\u00e9 \u20ac \U0001F388"), "\"h\u00e9 \u20ac \U0001F388\"");
  EXPECT_EQ(quoted("\xc7"), R"("\xc7")");
  EXPECT_EQ(quoted("a\xe2\x82"), R"("a\xe2\x82")");
  EXPECT_EQ(quoted("\xf0\x9f\x8e\x88\xff\xc3("), "\"\xf0\x9f\x8e\x88\\xff\\xc3(\"");
  EXPECT_EQ(quoted({"\0", 1}), R"("\x00")");
}

}  // namespace
}  // namespace octavo
