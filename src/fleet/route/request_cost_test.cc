#include "fleet/route/request_cost.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

constexpr std::string_view kComment = ": X-Octavo-Cost: output_tokens=5, compute_nanoseconds=70\n\n";

TEST(RequestCost, SumsHeadersAndHidesThem) {
  RequestCost cost(false);
  EXPECT_FALSE(cost.reported());
  for (int i = 0; i < 2; ++i) {
    http::Response answer;
    answer.headers.add("x-octavo-cost", "prompt_tokens_computed=4, output_tokens=1");
    answer.headers.add("X-Other", "kept");
    cost.take_head(answer);
    EXPECT_FALSE(answer.headers.find(kCostHeader));
    EXPECT_TRUE(answer.headers.find("X-Other"));
  }
  EXPECT_EQ(cost.sum()[CostUnit::prompt_tokens_computed], 8);
  EXPECT_EQ(cost.sum()[CostUnit::output_tokens], 2);
  EXPECT_EQ(cost.comment(), "");
}

TEST(RequestCost, ReadsTheCommentOfAStreamThatIsCutAnywhere) {
  const std::string stream = std::string(3000, 'x') +
                             "\n\ndata: {\"text\": \": X-Octavo\"}\n\ndata: [DONE]\n\n" +
                             std::string(kComment);
  for (std::size_t cut = 3000; cut <= stream.size(); ++cut) {
    RequestCost cost(true);
    std::string seen(cost.take_piece(std::string_view(stream).substr(0, cut)));
    seen += cost.take_piece(std::string_view(stream).substr(cut));
    cost.end_stream();
    ASSERT_TRUE(cost.reported()) << cut;
    ASSERT_EQ(cost.sum()[CostUnit::compute_nanoseconds], 70) << cut;
    ASSERT_TRUE(seen.find("data: [DONE]\n\n") != std::string::npos) << cut;
    ASSERT_EQ(cost.comment(), kComment);
  }
}

TEST(RequestCost, AContinuedStreamAddsBothWorkers) {
  RequestCost cost(false);
  cost.take_piece(kComment);
  cost.end_stream();
  cost.take_piece("data: [DONE]\n\n");
  cost.end_stream();
  cost.take_piece(kComment);
  cost.end_stream();
  EXPECT_EQ(cost.sum()[CostUnit::output_tokens], 10);
}

}  // namespace
}  // namespace octavo::fleet
