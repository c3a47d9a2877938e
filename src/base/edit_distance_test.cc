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

TEST(EditDistance, TheNearestNamesComeFirst) {
  using Names = std::vector<std::string_view>;
  const Names known{"queue-scorer", "prefill-filter", "kv-cost-scorer"};
  EXPECT_EQ(nearest_names("queue-scorrer", known, 2), (Names{"queue-scorer", "kv-cost-scorer"}));
  EXPECT_EQ(nearest_names("x", known, 9).size(), 3u);
  EXPECT_EQ(nearest_names("x", {}, 9), Names{});
  EXPECT_EQ(meant_name("prefil-filter", known), "prefill-filter");
  EXPECT_EQ(meant_name("random-picker", known), "");
  EXPECT_EQ(meant_name("", known), "");
  EXPECT_EQ(meant_name("any", {}), "");
}

}  // namespace
}  // namespace octavo
