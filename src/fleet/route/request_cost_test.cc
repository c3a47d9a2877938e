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

// Feeds the stream in three pieces, which may be empty. Returns the client's bytes.
std::string pass(RequestCost& cost, std::string_view stream, std::size_t first, std::size_t second) {
  std::string seen(cost.take_piece(stream.substr(0, first)));
  seen += cost.take_piece(stream.substr(first, second - first));
  seen += cost.take_piece(stream.substr(second));
  return seen + cost.end_stream().last_line;
}

TEST(RequestCost, HidesTheCommentOfAStreamThatIsCutAnywhere) {
  const std::string events =
      ": X-Other: 1\n\n:\n\ndata: {\"text\": \"\\n: X-Octavo-Cost: output_tokens=1\"}\n\ndata: [DONE]\n\n";
  for (const std::string& before : {std::string(), events}) {
    const std::string stream = before + std::string(kComment);
    for (std::size_t first = 0; first <= stream.size(); ++first)
      for (std::size_t second = first; second <= stream.size(); ++second) {
        RequestCost cost(true);
        ASSERT_EQ(pass(cost, stream, first, second), before) << first << ", " << second;
        ASSERT_EQ(cost.sum()[CostUnit::output_tokens], 5) << first << ", " << second;
        ASSERT_EQ(cost.sum()[CostUnit::compute_nanoseconds], 70) << first << ", " << second;
        ASSERT_EQ(cost.comment(), kComment);
      }
  }
}

TEST(RequestCost, AStreamWithoutTheCommentStaysAsItIs) {
  const std::string stream = "data: 1\n\n: X-Octavo-Costs: 1\n\ndata: : X-Octavo-Cost: 2\n\n: X-Octavo-Co";
  for (std::size_t first = 0; first <= stream.size(); ++first)
    for (std::size_t second = first; second <= stream.size(); ++second) {
      RequestCost cost(true);
      ASSERT_EQ(pass(cost, stream, first, second), stream) << first << ", " << second;
      ASSERT_FALSE(cost.reported());
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
