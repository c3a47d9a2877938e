#include "serve/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace octavo {
namespace {

TEST(WorkerPool, RefusesBeyondItsLimitAndRunsTheRest) {
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  std::promise<void> started;
  std::atomic<int> ran = 0;
  WorkerPool pool(1, 2);
  pool.post([&] { started.set_value(), open.wait(); });
  started.get_future().wait();
  EXPECT_TRUE(pool.try_post([&] { ++ran; }));
  EXPECT_TRUE(pool.try_post([&] { ++ran; }));
  EXPECT_FALSE(pool.try_post([&] { ++ran; }));
  std::promise<void> last;
  pool.post([&] { last.set_value(); });
  gate.set_value();
  last.get_future().wait();
  EXPECT_EQ(ran, 2);
  pool.stop();
  EXPECT_FALSE(pool.try_post([] {}));
}

}  // namespace
}  // namespace octavo
