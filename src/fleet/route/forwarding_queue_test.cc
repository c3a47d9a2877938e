// Tests of requests that wait in the queue until a worker has capacity.
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
  EXPECT_NE(refused.body.find("no replica is available, and the queue is full (--queue-size 1)"),
            std::string::npos)
      << refused.body;
  a.start();
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
  a.start();
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
  EXPECT_NE(post(R"({"timeout": 0.05})").body.find("timeout: the time limit of 0.05 s is over"),
            std::string::npos);
}

// The deadline is longer than the interval at which the queue checks it.
TEST_F(QueueTest, AWaitingRequestEndsAtItsOwnDeadline) {
  Replica a("a");
  route_with_queue(a, 1, 30, 20);
  lose(a);
  const http::Response refused = post(R"({"timeout": 1.3})");
  EXPECT_NE(refused.body.find("timeout: the time limit of 1.3 s is over"), std::string::npos) << refused.body;
  wait([&] { return !waits(); });  // it leaves the queue
}

TEST_F(QueueTest, ARouterWithoutWorkersKeepsRequestsOfAnotherRouter) {
  Replica a("a");
  route_with_queue(a, 1, 600, 20);
  lose(a);
  EXPECT_EQ(get("/health").status, 503);
  EXPECT_EQ(get("/health").headers.find("Retry-After"), "1");
  EXPECT_EQ(get("/health").headers.find(kKeepsRequests), "1");
  EXPECT_EQ(get("/readiness").status, 200) << "a Service must send requests, so that a fleet of none starts";
  Replica inner("inner");
  route({inner.url()}, {.health = {.interval_ms = 20}});
  inner.keeps_requests = true;
  const int before = inner.probes;
  wait([&] { return inner.probes > before + 5; });
  EXPECT_EQ(ready(), 1U);
  EXPECT_EQ(post("{}").status, 200);
  Replica other("other");
  route({inner.url(), other.url()}, {.health = {.interval_ms = 20}});
  const int paused = inner.probes;
  wait([&] { return inner.probes > paused + 2; });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post("{}").status, 200);
  EXPECT_EQ(other.requests, 4) << "a router that has workers is better";
}

TEST_F(QueueTest, AnEngineThatIsNotReadyIsNotTakenForARouterThatKeepsRequests) {
  Replica engine("engine");
  route({engine.url()}, {.health = {.interval_ms = 20}});
  engine.well = false;
  wait([&] { return ready() == 0; });
  engine.keeps_requests = true;
  wait([&] { return ready() == 1; });
}

// The decode worker was chosen because a prefill worker is near it.
TEST_F(QueueTest, ANearDecodeWorkerWithoutCapacityIsPassedOver) {
  Replica prefill("p", [](auto e) { e->respond({.body = R"({"kv_transfer_params": {"remote_port": 7}})"}); });
  Replica full("full", [](auto e) { e->respond({.status = 429}); });
  Replica free("free");
  start({.pd = {.enabled = true, .prefill_urls = {prefill.url()}, .decode_urls = {full.url(), free.url()}},
         .queue = {.size = 4, .timeout_s = 5}});
  const std::string record = fmt::format(
      R"({{"url": "{}", "worker_type": "prefill", "labels": {{"topology.kubernetes.io/zone": "a"}}}})",
      prefill.url());
  EXPECT_EQ(connect().post_json("/workers", record)->status, 202);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post(R"({"prompt": "a"})").status, 200);
  EXPECT_EQ(free.requests, 4);
  EXPECT_GE(full.requests, 1);
}

TEST_F(QueueTest, WithoutAQueueTheyAreRefusedAtOnce) {
  Replica a("a");
  route({a.url()}, {.health = {.interval_ms = 20}});
  lose(a);
  EXPECT_FALSE(get("/health").headers.find("Retry-After"));
  EXPECT_EQ(get("/readiness").status, 503);
  const http::Response refused = post("{}");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.find("Retry-After"), "1");
}

}  // namespace
}  // namespace octavo::fleet
