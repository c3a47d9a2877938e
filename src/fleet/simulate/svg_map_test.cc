#include "fleet/simulate/svg_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

TEST(SvgMap, ColoursSayHowManyTimes) {
  const std::string picture =
      svg_map({.title = "a map",
               .x_label = "across",
               .y_label = "up",
               .x = {"one", "two"},
               .y = {"low", "high"},
               .cells = {{1, {"same"}}, {8, {"more", "much"}}, {0.5, {"less"}}, {0, {"none"}}}});
  for (const char* text : {">a map<", ">across<", ">up<", ">one<", ">high<", ">same<", ">much<",
                           "fill=\"#ffffff\"", "fill=\"#dddddd\""})
    EXPECT_THAT(picture, HasSubstr(text));
  // The first row is at the bottom.
  EXPECT_LT(picture.find("y=\"108\""), picture.find("y=\"44\" width"));
  EXPECT_EQ(picture,
            svg_map({.title = "a map",
                     .x_label = "across",
                     .y_label = "up",
                     .x = {"one", "two"},
                     .y = {"low", "high"},
                     .cells = {{1, {"same"}}, {2, {"more", "much"}}, {0.4, {"less"}}, {0, {"none"}}}}))
      << "twice is wholly blue, half wholly orange";
}

}  // namespace
}  // namespace octavo::fleet
