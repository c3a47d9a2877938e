#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace octavo {
namespace {

TEST(BoundedQueue, RefusesWhenFullAndKeepsTheItem) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.try_push(std::move(second)));
  EXPECT_EQ(*second, 2);
  std::vector<std::unique_ptr<int>> out;
  queue.drain(out, false);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(queue.try_push(std::move(second)));
}

TEST(BoundedQueue, CloseRefusesNewKeepsOld) {
  BoundedQueue<int> queue(4);
  EXPECT_TRUE(queue.try_push(1));
  queue.close();
  EXPECT_FALSE(queue.try_push(2));
  std::vector<int> out;
  queue.drain(out, true);
  EXPECT_EQ(out, std::vector<int>{1});
}

TEST(BoundedQueue, NothingIsLostBetweenThreads) {
  BoundedQueue<int> queue(16);
  std::vector<std::thread> producers;
  for (int p = 0; p < 3; ++p) {
    producers.emplace_back([&] {
      for (int i = 0; i < 2000; ++i)
        while (!queue.try_push(1)) std::this_thread::yield();
    });
  }
  std::vector<int> out;
  while (out.size() < 6000) queue.drain(out, true);
  for (auto& producer : producers) producer.join();
  EXPECT_EQ(out.size(), 6000u);
}

TEST(BoundedQueue, WakeReturnsAnEmptyDrain) {
  BoundedQueue<int> queue(1);
  std::thread waker([&] { queue.wake(); });
  std::vector<int> out;
  queue.drain(out, true);
  EXPECT_TRUE(out.empty());
  waker.join();
}

}  // namespace
}  // namespace octavo
