#include "trace/span.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr std::string_view kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(Traceparent, AsTheW3cHasIt) {
  const auto context = parse_traceparent(kParent);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->parent_span, "00f067aa0ba902b7");
  EXPECT_TRUE(context->sampled);
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")->sampled);
  EXPECT_TRUE(parse_traceparent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
  for (const std::string_view wrong : {"", "00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                       "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                                       "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                       "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                                       "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                                       "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01"})
    EXPECT_FALSE(parse_traceparent(wrong)) << wrong;
}

TEST(Traceparent, IsWrittenAsItWasRead) {
  EXPECT_EQ(traceparent(*parse_traceparent(kParent)), kParent);
  EXPECT_FALSE(parse_traceparent(traceparent({new_trace_id(), new_span_id(), false}))->sampled);
}

}  // namespace
}  // namespace octavo
