#include "many/merge_metrics.h"

#include <gtest/gtest.h>

namespace octavo::many {
namespace {

TEST(MergeMetrics, SeriesOfAFamilyAreTogetherAndEqualSeriesAreAdded) {
  const std::string pages[] = {
      "# HELP a Text.\n# TYPE a counter\na{model=\"x\"} 3\n# HELP b B.\n# TYPE b gauge\nb 1.5\n",
      "# HELP b B.\n# TYPE b gauge\nb 2\n# HELP a Text.\n# TYPE a counter\na{model=\"y z\"} 4\n"
      "# HELP c C.\n# TYPE c histogram\nc_bucket{le=\"+Inf\"} 7\n"};
  EXPECT_EQ(merge_metrics(pages),
            "# HELP a Text.\n# TYPE a counter\na{model=\"x\"} 3\na{model=\"y z\"} 4\n"
            "# HELP b B.\n# TYPE b gauge\nb 3.5\n"
            "# HELP c C.\n# TYPE c histogram\nc_bucket{le=\"+Inf\"} 7\n");
  EXPECT_EQ(merge_metrics({}), "");
}

}  // namespace
}  // namespace octavo::many
