#include "traffic/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::traffic {
namespace {

using testing::HasSubstr;

double number(const boost::json::object& figures, std::string_view name) {
  return figures.at(name).to_number<double>();
}

TEST(Figures, AreThoseThatVllmPrints) {
  const std::vector<AnswerTimes> answers{{.completed = true,
                                          .input_tokens = 10,
                                          .output_tokens = 3,
                                          .sent_us = 0,
                                          .first_us = 100'000,
                                          .last_us = 300'000},
                                         {.completed = true,
                                          .input_tokens = 20,
                                          .output_tokens = 1,
                                          .sent_us = 0,
                                          .first_us = 200'000,
                                          .last_us = 200'000},
                                         {}};
  GapCounts gaps;
  gaps.add(50'000);
  gaps.add(150'000);
  const std::vector<double> percentiles{99, 99.9};
  const auto f =
      figures(answers, gaps, 2, *Goodput::parse(std::vector<std::string>{"ttft:150"}), percentiles);
  EXPECT_EQ(number(f, "completed"), 2);
  EXPECT_EQ(number(f, "failed"), 1);
  EXPECT_EQ(number(f, "total_input_tokens"), 30);
  EXPECT_EQ(number(f, "output_throughput"), 2);
  EXPECT_EQ(number(f, "total_token_throughput"), 17);
  EXPECT_EQ(number(f, "request_goodput"), 0.5);
  EXPECT_EQ(number(f, "max_concurrent_requests"), 2);
  EXPECT_EQ(number(f, "max_output_tokens_per_s"), 4);
  EXPECT_DOUBLE_EQ(number(f, "mean_ttft_ms"), 150);
  EXPECT_DOUBLE_EQ(number(f, "std_ttft_ms"), 50);
  EXPECT_DOUBLE_EQ(number(f, "mean_tpot_ms"), 100) << "an answer of one token has none";
  EXPECT_DOUBLE_EQ(number(f, "median_itl_ms"), 100);
  EXPECT_DOUBLE_EQ(number(f, "p99_itl_ms"), 149);
  EXPECT_DOUBLE_EQ(number(f, "p99.9_e2el_ms"), 299.9);
}

TEST(Figures, OfNothingAreZero) {
  const auto f = figures({}, {}, 0, {}, std::vector<double>{99});
  EXPECT_EQ(number(f, "request_throughput"), 0);
  EXPECT_EQ(number(f, "p99_ttft_ms"), 0);
  EXPECT_TRUE(f.at("request_goodput").is_null());
}

TEST(Goodput, ALimitIsANameAndMilliseconds) {
  const auto limits = Goodput::parse(std::vector<std::string>{"ttft:200", "e2el:5000.5"});
  ASSERT_TRUE(limits);
  EXPECT_TRUE(limits->met_by({200, 1e9, 5000.5}));
  EXPECT_FALSE(limits->met_by({200.1, 0, 0}));
  for (const char* bad : {"ttft", "ttft:", "ttft:x", "ttft:-1", "ttft:0", "itl:5", ":5", "tpot:5ms"})
    EXPECT_THAT(Goodput::parse(std::vector<std::string>{bad}).error().message, HasSubstr(bad));
}

}  // namespace
}  // namespace octavo::traffic
