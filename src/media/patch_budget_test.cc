#include "media/patch_budget.h"

#include <gtest/gtest.h>

namespace octavo::media {
namespace {

// Expected values: get_patch_grid_size of transformers' processor.
TEST(PatchBudget, SizesOfRealImages) {
  const auto size = [](int width, int height) {
    const auto grid =
        patch_budget_grid(width, height, {.unit = 16, .merge = 2, .patches_min = 1024, .patches_max = 13312});
    return grid ? std::pair(grid->width, grid->height) : std::pair(0, 0);
  };
  EXPECT_EQ(size(1920, 1080), std::pair(1920, 1088));
  EXPECT_EQ(size(100, 50), std::pair(704, 416));
  EXPECT_EQ(size(6000, 4000), std::pair(2240, 1504));
  EXPECT_EQ(size(512, 512), std::pair(512, 512));
  EXPECT_EQ(size(4000, 10), std::pair(0, 0));
}

}  // namespace
}  // namespace octavo::media
