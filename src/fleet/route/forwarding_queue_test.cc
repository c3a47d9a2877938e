// Tests of requests that wait in the queue until a worker is available.
#include <future>

#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

class QueueTest : public RouterTest {
 protected:
  void route_with_queue(Replica& replica, int size, int timeout_s, int probes_ms) {
    route({replica.url()},
          {.health = {.interval_ms = probes_ms}, .queue = {.size = size, .timeout_s = timeout_s}});
  }
  void lose(Replica& replica) {
    replica.stop();
    wait([&] { return ready() == 0; });
  }
  std::future<http::Response> post_later() {
    return std::async(std::launch::async, [&] { return post("{}"); });
  }
  bool waits() {
    return get("/metrics").body.find("llm_d_epp_flow_control_queue_size{priority=\"0\"} 1\n") !=
           std::string::npos;
  }
};

TEST_F(QueueTest, RequestsWaitUntilAWorkerIsBack) {
  Replica a("a");
  route_with_queue(a, 1, 600, 20);
  lose(a);
  auto answer = post_later();
  wait([&] { return waits(); });
  const http::Response refused = post("{}");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.find("Retry-After"), "1");
  EXPECT_NE(refused.body.find("no replica is available, and the queue is full (--queue-size 1)"), std::string::npos)
      << refused.body;
  a.start(a.port());
  EXPECT_EQ(answer.get().status, 200);
}

// The router does not know yet that the worker has ended.
TEST_F(QueueTest, RequestsThatReachNoWorkerWait) {
  Replica a("a");
  route_with_queue(a, 1, 600, 10'000);
  a.stop();
  auto answer = post_later();
  wait([&] {
    return get("/metrics").body.find("smg_worker_errors_total{worker=\"" + a.url() + "\"} ") !=
           std::string::npos;
  });
  a.start(a.port());
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(QueueTest, RequestsAreRefusedIfNoWorkerIsBackInTime) {
  Replica a("a");
  route_with_queue(a, 1, 1, 20);
  lose(a);
  const http::Response refused = post("{}");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.find("Retry-After"), "1");
  EXPECT_NE(refused.body.find("--queue-timeout-secs 1"), std::string::npos) << refused.body;
  EXPECT_NE(post(R"({"timeout": 0.05})").body.find("timeout: the time limit of 0.05 s is over"), std::string::npos);
}

TEST_F(QueueTest, WithoutAQueueTheyAreRefusedAtOnce) {
  Replica a("a");
  route({a.url()}, {.health = {.interval_ms = 20}});
  lose(a);
  const http::Response refused = post("{}");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.find("Retry-After"), "1");
}

}  // namespace
}  // namespace octavo::fleet
