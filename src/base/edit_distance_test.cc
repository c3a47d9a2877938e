#include "base/edit_distance.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(EditDistance, CountsWhatIsPutInTakenOutOrChanged) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
}

}  // namespace
}  // namespace octavo
