#include "base/quoted_text.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(QuotedText, EscapesWhatIsNoPlainText) {
  EXPECT_EQ(quoted_text(""), "\"\"");
  EXPECT_EQ(quoted_text("a b"), "\"a b\"");
  EXPECT_EQ(quoted_text("a\"\\\n"), R"("a\"\\\x0a")");
  EXPECT_EQ(quoted_text("h\u00e9 \u20ac \U0001F388"), "\"h\u00e9 \u20ac \U0001F388\"");
  EXPECT_EQ(quoted_text("\xc7"), R"("\xc7")");
  EXPECT_EQ(quoted_text("a\xe2\x82"), R"("a\xe2\x82")");
  EXPECT_EQ(quoted_text("\xf0\x9f\x8e\x88\xff\xc3("), "\"\xf0\x9f\x8e\x88\\xff\\xc3(\"");
  EXPECT_EQ(quoted_text({"\0", 1}), R"("\x00")");
}

}  // namespace
}  // namespace octavo
