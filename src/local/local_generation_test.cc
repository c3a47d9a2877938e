#include "local/local_generation.h"

#include <gtest/gtest.h>

#include <thread>

namespace octavo {
namespace {

Output output_of(RequestId id) {
  Output output;
  output.id = id;
  return output;
}

TEST(Arrivals, ComeInOrderWithTheirJobs) {
  Arrivals arrivals;
  Arrivals::Arrival arrival;
  EXPECT_FALSE(arrivals.pop(arrival, 0));
  const auto first = arrivals.sink(7), second = arrivals.sink(8);
  first->deliver(output_of(1));
  second->deliver(output_of(2));
  first->deliver(output_of(3));
  for (const auto& [job, id] : {std::pair{7U, 1}, {8U, 2}, {7U, 3}}) {
    ASSERT_TRUE(arrivals.pop(arrival, 0));
    EXPECT_EQ(arrival.job, job);
    EXPECT_EQ(arrival.output.id, static_cast<RequestId>(id));
    EXPECT_GT(arrival.at_us, 0);
    EXPECT_EQ(arrival.sink, job == 7 ? first : second);
  }
  EXPECT_FALSE(arrivals.pop(arrival, 0));
}

TEST(Arrivals, WakeAConsumerThatWaits) {
  Arrivals arrivals;
  std::thread producer([sink = arrivals.sink(1)] { sink->deliver(output_of(5)); });
  Arrivals::Arrival arrival;
  EXPECT_TRUE(arrivals.pop(arrival, 60'000));
  EXPECT_EQ(arrival.output.id, 5U);
  producer.join();
}

// A request that was aborted may end after its consumer.
TEST(Arrivals, OutputsAfterTheEndOfTheQueueAreDropped) {
  std::shared_ptr<OutputSink> late;
  {
    const Arrivals arrivals;
    late = arrivals.sink(1);
  }
  late->deliver(output_of(5));
}

}  // namespace
}  // namespace octavo
