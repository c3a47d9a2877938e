#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/clock.h"
#include "fleet/pick/test_processor.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

TEST_F(ProcessorTest, ARequestWaitsForItsTurn) {
  ProcessorOptions options{.rules = {.objectives = {{"chat", 10}}},
                           .flow = FlowGateOptions{.flow = {.bands = {{10, {.requests_max = 1}}}},
                                                   .detector = ConcurrencyDetector{.requests_max = 1}}};
  begin(1, options);
  const std::map<std::string, std::string> chat{{"x-llm-d-inference-objective", "chat"}};
  // Sends a complete request, which then waits.
  const auto begin_to_wait = [&](Processor& processor, std::promise<void>& resumed) {
    std::vector<ProcessingResponse> none;
    CHECK(processor.process(request_headers(chat), none));
    CHECK(processor.process(request_body(kBody), none));
    EXPECT_TRUE(none.empty());
    EXPECT_TRUE(processor.waits());
    processor.wait([&] { resumed.set_value(); });
  };
  const auto go_on = [&](Processor& processor, std::promise<void>& resumed) {
    resumed.get_future().wait();
    answers_.clear();
    processor.go_on(answers_);
    EXPECT_FALSE(processor.waits());
  };
  std::promise<void> promises[4];
  Processor first(*context_), second(*context_), third(*context_), cancelled(*context_);
  begin_to_wait(first, promises[0]);
  go_on(first, promises[0]);
  EXPECT_EQ(choice_headers().at("x-gateway-destination-endpoint"), "10.0.0.1:8000");
  begin_to_wait(second, promises[1]);
  begin_to_wait(third, promises[2]);
  go_on(third, promises[2]);  // the band of chat requests has capacity for one request
  EXPECT_EQ(answers_.at(0).immediate_response().status().code(), 429);
  std::vector<ProcessingResponse> rest;
  CHECK(first.process(response_body("{}", true), rest));
  go_on(second, promises[1]);
  EXPECT_EQ(choice_headers().at("x-gateway-destination-endpoint"), "10.0.0.1:8000");
  begin_to_wait(cancelled, promises[3]);
  cancelled.cancel();
  go_on(cancelled, promises[3]);
  EXPECT_EQ(answers_.at(0).immediate_response().status().code(), 503);
}

TEST_F(ProcessorTest, ARunningRequestEndsForOneOfAHigherPriority) {
  begin(1, {.rules = {.objectives = {{"batch", -1}}},
            .flow = FlowGateOptions{.detector = ConcurrencyDetector{.requests_max = 1}, .evicts = true}});
  const auto start = [&](Processor& processor, const char* objective, std::promise<void>& resumed) {
    std::vector<ProcessingResponse> none;
    CHECK(processor.process(request_headers({{"x-llm-d-inference-objective", objective}}), none));
    CHECK(processor.process(request_body(kBody), none));
    processor.wait([&] { resumed.set_value(); });
  };
  Processor batch(*context_), chat(*context_);
  std::promise<void> goes, evicted, follows;
  start(batch, "batch", goes);
  goes.get_future().wait();
  EXPECT_FALSE(batch.begins());
  batch.go_on(answers_);
  ASSERT_TRUE(batch.begins());
  batch.evictable([&] { evicted.set_value(); });
  EXPECT_FALSE(batch.begins());
  start(chat, "chat", follows);
  evicted.get_future().wait();
  answers_.clear();
  batch.evict(answers_);
  ASSERT_EQ(answers_.size(), 1U);
  const auto& immediate = answers_[0].immediate_response();
  EXPECT_EQ(immediate.status().code(), 429);
  EXPECT_EQ(immediate.body(), "request evicted by flow control");
  EXPECT_EQ(headers_of(immediate.headers()).at("x-llm-d-request-dropped-reason"), "evicted");
  EXPECT_TRUE(batch.over());
  batch.evict(answers_);
  EXPECT_EQ(answers_.size(), 1U) << "once";
  follows.get_future().wait();
  answers_.clear();
  chat.go_on(answers_);
  EXPECT_EQ(choice_headers().at("x-gateway-destination-endpoint"), "10.0.0.1:8000");
  EXPECT_THAT(context_->gate->metrics(), HasSubstr("octavo_pick_flow_control_evictions_total 1"));
}

TEST_F(ProcessorTest, AClientThatLeavesBeforeItsRequestWaitsIsNotWaitedFor) {
  begin(1, {.flow = FlowGateOptions{.detector = ConcurrencyDetector{.requests_max = 1}}});
  ASSERT_TRUE(balancer_->choose({}, {})) << "takes the only place";
  ASSERT_TRUE(send(request_headers()));
  ASSERT_TRUE(send(request_body(kBody)));
  ASSERT_TRUE(processor_->waits());
  processor_->cancel();
  bool resumed = false;
  processor_->wait([&] { resumed = true; });
  EXPECT_TRUE(resumed);
  context_->gate->stop();  // ends waiting requests before `resumed` is destroyed
}

TEST_F(ProcessorTest, RequestsOfAMomentWithOnePromptGoToOneEndpoint) {
  begin(3, {},
        {{{"", "burst-prefix-cache-producer", {{"windowDurationMs", 2000}}},
          {"", "prefix-cache-scorer", {{"prefixMatchInfoProducerName", "burst-prefix-cache-producer"}}}},
         {{"prefix-cache-scorer"}}});
  http::AsyncClient client({.threads = 1});
  context_->bursts = std::make_unique<BurstGate>(*balancer_, client.next_loop());
  constexpr std::string_view kOther = R"({"model":"m","prompt":"another"})";
  const std::string_view bodies[] = {kBody, kOther, kBody, kOther, kBody};
  std::vector<std::unique_ptr<Processor>> processors;
  std::promise<void> resumed[std::size(bodies)];
  for (std::size_t i = 0; i < std::size(bodies); ++i) {
    next();
    ASSERT_TRUE(send(request_headers()));
    ASSERT_TRUE(send(request_body(bodies[i])));
    ASSERT_TRUE(processor_->waits());
    processor_->wait([&, i] { resumed[i].set_value(); });
    processors.push_back(std::move(processor_));
  }
  std::vector<std::string> homes;
  for (std::size_t i = 0; i < std::size(bodies); ++i) {
    resumed[i].get_future().wait();
    answers_.clear();
    processors[i]->go_on(answers_);
    homes.push_back(choice_headers().at("x-gateway-destination-endpoint"));
  }
  const std::string &first = homes[0], &other = homes[1];
  EXPECT_NE(first, other);
  EXPECT_THAT(homes, testing::ElementsAre(first, other, first, other, first));
}

TEST_F(ProcessorTest, WithoutFlowControlPrioritiesBelowZeroGoWhileThereIsRoom) {
  begin(1, {.rules = {.objectives = {{"batch", -1}}}});
  const auto ask = [&](std::map<std::string, std::string> headers) {
    next();
    CHECK(send(request_headers(std::move(headers))));
    CHECK(send(request_body(kBody)));
  };
  ask({{"x-llm-d-inference-objective", "batch"}});
  expect_refused(429, "system saturated, sheddable request dropped", "rejected-saturated");
  ask({});
  EXPECT_TRUE(answers_.at(0).has_request_headers());
  EndpointState free;
  free.observed_us = now_us();
  balancer_->scraped({{.endpoint = 0, .answered = true, .state = free}});
  ask({{"x-llm-d-inference-objective", "batch"}});
  EXPECT_TRUE(answers_.at(0).has_request_headers());
}

}  // namespace
}  // namespace octavo::fleet
