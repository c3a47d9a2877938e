#include "fleet/simulate/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fleet/simulate/test_traffic.h"

namespace octavo::fleet {
namespace {

Trace one_request(int input, int output, std::int64_t arrival_us = 5'000) {
  Trace trace{.blocks = {0}, .block_limit = 1};
  trace.requests.push_back({.arrival_us = arrival_us, .input_tokens = input, .output_tokens = output});
  return trace;
}

TEST(Simulation, OneRequestTakesWhatTheTimingSays) {
  SimulationOptions options = small_fleet(1, "round_robin");
  options.timing = {.fixed_us = 1000, .token_us = 10};
  const auto result = simulate(options, one_request(100, 3));
  ASSERT_TRUE(result) << result.error().message;
  const traffic::AnswerTimes& r = result->answers[0];
  EXPECT_TRUE(r.completed);
  EXPECT_EQ(r.sent_us, 5'000);
  EXPECT_EQ(r.first_us, 5'000 + 1000 + 100 * 10);
  EXPECT_EQ(r.last_us, r.first_us + 2 * (1000 + 10));
  EXPECT_EQ(result->duration_us, r.last_us - r.sent_us);
  EXPECT_EQ(result->replicas[0].steps, 3);
  EXPECT_EQ(result->replicas[0].busy_us, result->duration_us);
  std::vector<std::pair<std::int64_t, std::uint64_t>> gaps;
  result->gaps.each([&](std::int64_t gap, std::uint64_t count) { gaps.emplace_back(gap, count); });
  EXPECT_EQ(gaps, (std::vector<std::pair<std::int64_t, std::uint64_t>>{{1010, 2}}));
}

TEST(Simulation, LongPromptsTakeSeveralStepsAndLongGapsAreCounted) {
  SimulationOptions options = small_fleet(1, "round_robin");
  options.scheduler.max_num_batched_tokens = 300;
  options.timing = {.fixed_us = 2'000'000};
  const auto result = *simulate(options, one_request(500, 2));
  EXPECT_EQ(result.replicas[0].steps, 3);
  std::int64_t longest = 0;
  result.gaps.each([&](std::int64_t gap, std::uint64_t) { longest = gap; });
  EXPECT_EQ(longest, 2'000'000);
}

double cached_share(const SimulationOptions& options, const Trace& trace) {
  const FleetSample end = simulate(options, trace)->samples.back();
  return static_cast<double>(end.cached_tokens) / static_cast<double>(end.prompt_tokens);
}

TEST(Simulation, WhatReplicasTellIsKnownLongerThanWhatTheyWereSent) {
  SimulationOptions options = small_fleet(3, "kv_aware");
  options.policy_options.router_ttl_secs = 1;
  const Trace trace = conversations(7, 6, 5'000'000);
  const double sent = cached_share(options, trace);
  options.kv_events = true;
  const double reported = cached_share(options, trace);
  // All blocks of the previous turn are cached, except the last block. Prompts have 2 to 7 blocks.
  EXPECT_GT(reported, 0.7);
  EXPECT_LT(sent, reported - 0.2);
}

TEST(Simulation, APipelineMayStandForAPolicy) {
  SimulationOptions options = small_fleet(3, "mine");
  EXPECT_EQ(simulate(options, one_request(10, 1)).error().field, "policy");
  options.pipeline = find_policy("kv_aware")->pipeline({});
  SimulationOptions named = small_fleet(3, "kv_aware");
  const Trace trace = conversations(7, 6, 400'000);
  EXPECT_EQ(simulate(options, trace)->duration_us, simulate(named, trace)->duration_us);
}

TEST(Simulation, EveryRequestEndsOnceUnderEveryPolicy) {
  const Trace trace = conversations(7, 6, 400'000);
  for (const Policy& policy : policies()) {
    std::size_t reported = 0;
    const auto result =
        *simulate(small_fleet(3, std::string(policy.name)), trace, [&](std::size_t done, std::size_t all) {
          EXPECT_LE(done, all);
          reported = done;
        });
    int ended = 0;
    for (const ReplicaUse& use : result.replicas) ended += use.requests;
    EXPECT_EQ(ended, 42) << policy.name;
    for (std::size_t i = 0; i < trace.requests.size(); ++i) {
      const traffic::AnswerTimes& r = result.answers[i];
      EXPECT_TRUE(r.completed);
      EXPECT_EQ(r.output_tokens, 20);
      EXPECT_EQ(r.sent_us, trace.requests[i].arrival_us);
      EXPECT_LT(r.sent_us, r.first_us);
      EXPECT_LT(r.first_us, r.last_us);
    }
    EXPECT_EQ(reported, 0U) << "told every 256 requests";
    EXPECT_GT(result.samples.size(), 1U);
    EXPECT_EQ(result.samples.back().running + result.samples.back().waiting, 0);
  }
}

TEST(Simulation, IsTheSameEachTimeAndAnotherWithAnotherSeed) {
  const Trace trace = conversations(8, 6, 300'000);
  const auto times = [&](std::uint64_t seed) {
    SimulationOptions options = small_fleet(4, "random");
    options.seed = seed;
    const auto result = *simulate(options, trace);
    std::vector<std::int64_t> all;
    for (const traffic::AnswerTimes& r : result.answers) all.push_back(r.last_us);
    return all;
  };
  EXPECT_EQ(times(1), times(1));
  EXPECT_NE(times(1), times(2));
}

TEST(Simulation, CacheAwareFindsMorePromptsInCachesThanRoundRobin) {
  // With 7 users and 4 replicas, round robin sends each turn of a user to a different replica.
  const Trace trace = conversations(7, 10, 2'000'000);
  const auto blind = *simulate(small_fleet(4, "round_robin"), trace);
  const auto aware = *simulate(small_fleet(4, "cache_aware"), trace);
  std::int64_t all = 0, best = 0;
  for (const TraceRequest& r : trace.requests) {
    all += r.input_tokens;
    best += r.input_tokens > 1024 ? r.input_tokens - 512 : 0;
  }
  EXPECT_EQ(aware.samples.back().cached_tokens, best) << "of each turn all but the new block";
  EXPECT_LT(blind.samples.back().cached_tokens, best * 3 / 4);
  EXPECT_EQ(aware.samples.back().prompt_tokens, all);
}

TEST(Simulation, SmallCachesForgetAndPreemptButEveryoneIsServed) {
  SimulationOptions options = small_fleet(2, "cache_aware");
  options.scheduler.num_blocks = 400;  // 6,400 tokens
  Trace trace = conversations(16, 4, 10'000);
  for (TraceRequest& r : trace.requests) r.output_tokens = 800;
  const auto result = *simulate(options, trace);
  std::int64_t preemptions = 0;
  for (const ReplicaUse& use : result.replicas) preemptions += use.preemptions;
  EXPECT_GT(preemptions, 0);
  EXPECT_TRUE(std::ranges::all_of(result.answers, &traffic::AnswerTimes::completed));
}

TEST(Simulation, WhatNeverFitsOrComesInAFullQueueIsRefused) {
  SimulationOptions options = small_fleet(1, "round_robin");
  Trace trace = one_request(512, 20'000);
  EXPECT_FALSE(simulate(options, trace)->answers[0].completed) << "longer than max_model_len";
  trace = one_request(512, 5, 0);
  trace.requests.resize(5, trace.requests[0]);
  options.scheduler.max_num_seqs = 1;
  options.scheduler.max_sequences = 3;
  const auto result = *simulate(options, trace);
  EXPECT_EQ(std::ranges::count_if(result.answers, &traffic::AnswerTimes::completed), 3);
}

TEST(Simulation, AFleetGrowsAndShrinksAndNoRequestIsLost) {
  const Trace trace = conversations(12, 10, 2'000'000);  // 20 seconds
  for (const Policy& policy : policies()) {
    // Conversations continue at the replica that has cached their prefix, unless it is overloaded.
    const bool goes_home = policy.name == "cache_aware" || policy.name == "kv_aware";
    SimulationOptions options = small_fleet(1, std::string(policy.name));
    options.timing.fixed_us = 50'000;  // an answer takes a second, so a removed replica still has requests
    options.startup_us = 1'000'000;
    options.sizes = {{4'000'000, 4}, {9'000'000, 1}, {15'000'000, 3}, {60'000'000, 1}};
    const auto result = *simulate(options, trace);
    EXPECT_TRUE(std::ranges::all_of(result.answers, &traffic::AnswerTimes::completed)) << policy.name;
    ASSERT_EQ(result.replicas.size(), 6U) << "one, three and two";
    for (int i = 0; i < 3; ++i) {
      const ReplicaUse& went = result.replicas[static_cast<std::size_t>(i)];
      EXPECT_GE(went.lifetime_us, 6'000'000);  // five seconds plus one second to start
      EXPECT_LT(went.lifetime_us, 9'000'000);
      EXPECT_LE(went.busy_us, went.lifetime_us);
      EXPECT_TRUE(went.requests > 0 || goes_home) << policy.name;
    }
    std::int64_t longest = 0;
    for (const ReplicaUse& use : result.replicas) longest = std::max(longest, use.lifetime_us);
    EXPECT_EQ(longest, result.duration_us) << "the first one stays";
    const auto size_at = [&](std::int64_t time_us) {
      return std::ranges::find(result.samples, time_us, &FleetSample::time_us)->replicas;
    };
    EXPECT_EQ(size_at(3'000'000), 1);
    EXPECT_EQ(size_at(4'000'000), 4);
    EXPECT_EQ(size_at(9'000'000), 1);
    EXPECT_EQ(size_at(15'000'000), 3);
  }
}

TEST(Simulation, AReplicaThatIsAddedHasAnEmptyCache) {
  Trace trace = conversations(1, 4, 1'000'000);
  SimulationOptions options = small_fleet(1, "cache_aware");
  const auto stays = *simulate(options, trace);
  // The newest replica is removed, so the first replica keeps its cache.
  options.sizes = {{1'900'000, 2}, {1'950'000, 1}};
  EXPECT_EQ(simulate(options, trace)->samples.back().cached_tokens, stays.samples.back().cached_tokens);
  trace = one_request(1024, 2, 0);
  trace.blocks = {0, 1};
  trace.block_limit = 2;
  trace.requests.resize(4, trace.requests[0]);
  for (int i = 0; i < 4; ++i) trace.requests[static_cast<std::size_t>(i)].arrival_us = i * 1'000'000;
  options = small_fleet(2, "round_robin");
  EXPECT_EQ(simulate(options, trace)->samples.back().cached_tokens, 2 * 1008) << "each once";
  options.sizes = {{1'500'000, 1}, {1'600'000, 2}};
  EXPECT_EQ(simulate(options, trace)->samples.back().cached_tokens, 1008) << "one of them was new";
}

// One prefill and one decode replica. The KV cache of a token has 1 KB, and the link transfers 1 MB/s.
SimulationOptions apart() {
  SimulationOptions options = small_fleet(1, "round_robin");
  options.timing = {.fixed_us = 1000, .token_us = 10};
  options.prefill = {.replicas = 1,
                     .scheduler = options.scheduler,
                     .timing = {.fixed_us = 5000, .token_us = 20},
                     .policy = "round_robin",
                     .kv_bytes_per_token = 1000,
                     .link_bytes_per_second = 1e6,
                     .link_latency_us = 300};
  return options;
}

TEST(Simulation, APromptThatIsComputedApartIsTakenOver) {
  const auto result = simulate(apart(), one_request(100, 3));
  ASSERT_TRUE(result) << result.error().message;
  const traffic::AnswerTimes& r = result->answers[0];
  EXPECT_TRUE(r.completed);
  // tokens in complete blocks; the decode replica's first step computes all other tokens
  const int held = 96;
  const std::int64_t prefill_us = 5000 + 100 * 20, transfer_us = held * 1000 + 300;
  EXPECT_EQ(r.first_us, r.sent_us + prefill_us + transfer_us + 1000 + (100 - held) * 10);
  EXPECT_EQ(r.last_us, r.first_us + 2 * (1000 + 10));
  EXPECT_EQ(r.output_tokens, 3);
  EXPECT_EQ(result->samples.back().replicas, 2);
  EXPECT_EQ(result->samples.back().prompt_tokens, 100);
  ASSERT_EQ(result->replicas.size(), 2U);
  EXPECT_TRUE(result->replicas[0].prefills);
  EXPECT_EQ(result->replicas[0].busy_us, prefill_us);
  EXPECT_FALSE(result->replicas[1].prefills);
  EXPECT_EQ(result->replicas[1].requests, 1);
}

TEST(Simulation, OnlyBlocksThatTheDecoderHasNotAreSentOneAfterTheOther) {
  Trace trace = one_request(512, 2, 0);
  trace.requests.resize(2, trace.requests[0]);
  // the same prompt again, of which all blocks except the last are cached
  trace.requests[1].arrival_us = 10'000'000;
  const auto result = *simulate(apart(), trace);
  const auto ttft = [&](std::size_t i) { return result.answers[i].first_us - result.answers[i].sent_us; };
  EXPECT_GE(ttft(0), 512 * 1000);
  EXPECT_LT(ttft(1), 32 * 1000 + 10'000);
  EXPECT_EQ(result.samples.back().cached_tokens, 496) << "of the replica that computes prompts";

  trace = one_request(512, 2, 0);
  trace.blocks = {0, 1};
  trace.block_limit = 2;
  trace.requests.resize(2, trace.requests[0]);
  trace.requests[1].first_block = 1;
  const auto both = *simulate(apart(), trace);
  EXPECT_GE(both.answers[1].first_us, 2 * 512 * 1000) << "one link";
}

TEST(Simulation, APromptOfWhichLittleIsMissingStaysWhereItIsDecoded) {
  SimulationOptions options = apart();
  options.policy = "cache_aware";
  options.prefill.local_tokens_max = 100;
  const auto small = *simulate(options, one_request(100, 3));
  EXPECT_EQ(small.answers[0].first_us - small.answers[0].sent_us, 1000 + 100 * 10);
  EXPECT_EQ(small.replicas[0].steps, 0);
  EXPECT_GT(simulate(options, one_request(101, 3))->replicas[0].steps, 0);
}

TEST(Simulation, DecodersThatAreFullTakePromptsOverLater) {
  SimulationOptions options = apart();
  options.scheduler.num_blocks = 80;  // enough for one request at a time
  options.scheduler.max_model_len = 1200;
  options.prefill.link_bytes_per_second = 1e9;
  Trace trace = one_request(1024, 100, 0);
  trace.blocks.clear();
  trace.requests.resize(6, trace.requests[0]);
  for (std::uint32_t i = 0; i < 6; ++i) {
    trace.requests[i].first_block = 2 * i;
    trace.blocks.insert(trace.blocks.end(), {2 * i, 2 * i + 1});
  }
  trace.block_limit = 12;
  const auto result = *simulate(options, trace);
  for (const traffic::AnswerTimes& answer : result.answers) {
    EXPECT_TRUE(answer.completed);
    EXPECT_EQ(answer.output_tokens, 100);
  }
  EXPECT_EQ(result.replicas[1].requests, 6);
}

TEST(Simulation, UsersWaitForTheirAnswers) {
  SimulationOptions options = small_fleet(1, "round_robin");
  options.timing = {.fixed_us = 1'000'000};
  Trace trace = one_request(100, 3, 2'000'000);
  trace.closed = true;
  trace.requests.resize(3, trace.requests[0]);
  trace.requests[1].follows = 0;
  trace.requests[1].output_tokens = 1 << 20;  // too long, so the request is refused
  trace.requests[1].arrival_us = 500'000;
  trace.requests[2].follows = 1;
  const auto result = *simulate(options, trace);
  EXPECT_EQ(result.answers[0].sent_us, 2'000'000);
  EXPECT_EQ(result.answers[1].sent_us, result.answers[0].last_us + 500'000);
  EXPECT_FALSE(result.answers[1].completed);
  EXPECT_EQ(result.answers[2].sent_us, result.answers[1].sent_us + 2'000'000) << "the user goes on";
  EXPECT_EQ(result.answers[2].output_tokens, 3);
}

TEST(Simulation, SaysWhatIsWrong) {
  const Trace trace = one_request(10, 1);
  EXPECT_EQ(simulate(small_fleet(1, "nobody's"), trace).error().field, "policy");
  SimulationOptions options = small_fleet(1, "random");
  options.scheduler.num_blocks = 0;
  EXPECT_EQ(simulate(options, trace).error().field, "num_blocks");
  options = apart();
  options.scheduler.enable_prefix_caching = false;
  EXPECT_EQ(simulate(options, trace).error().field, "enable-prefix-caching");
  options = apart();
  options.scheduler.max_model_len = 8;  // limit of the decode replica
  EXPECT_FALSE(simulate(options, trace)->answers[0].completed) << "refused";
}

// The scaling loop runs every second, and returns 1, 3, 2, 3, 1.
TEST(Simulation, AScalingLoopAddsAfterTheStartAndRemovesAtOnce) {
  SimulationOptions options = small_fleet(1, "round_robin");
  options.metrics_interval_us = 100'000;
  options.startup_us = 1'500'000;
  std::vector<std::size_t> read;
  double tokens = 0, finished = 0;
  options.scaling = {.interval_us = 1'000'000, .replicas = [&](std::int64_t now_us, auto replicas) {
                       read.push_back(replicas.size());
                       for (const ReplicaReading& one : replicas) {
                         tokens += one.tokens;
                         finished += one.finished;
                       }
                       constexpr int kWanted[] = {1, 3, 3, 3, 2, 3, 1};
                       return kWanted[std::min<std::int64_t>(now_us / 1'000'000 - 1, 6)];
                     }};
  Trace trace = conversations(4, 5, 2'000'000);
  for (TraceRequest& request : trace.requests) request.output_tokens = 3;
  const auto result = simulate(options, trace);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(std::vector(read.begin(), read.begin() + 9), testing::ElementsAre(1, 1, 1, 3, 3, 2, 2, 1, 1));
  // Replicas are added at 2 s and are ready at 3.5 s. One replica is removed at 5 s, requested again at 6
  // s, and canceled at 7 s, before it is ready.
  std::vector<double> lifetimes;
  for (const ReplicaUse& use : result->replicas)
    lifetimes.push_back(static_cast<double>(use.lifetime_us) * 1e-6);
  ASSERT_EQ(lifetimes.size(), 4);
  EXPECT_NEAR(lifetimes[0], 3, 0.1);  // the newest replica
  EXPECT_NEAR(lifetimes[1], 1, 0.1);  // the canceled replica, which had no requests
  EXPECT_NEAR(lifetimes[2], 5, 0.1);
  EXPECT_NEAR(lifetimes[3], static_cast<double>(result->duration_us) * 1e-6, 0.1);
  double of_all = 0;
  for (const auto& answer : result->answers) of_all += answer.input_tokens + answer.output_tokens;
  EXPECT_GT(tokens, 0.6 * of_all) << "all but those of replicas that went and of the last second";
  EXPECT_LE(tokens, of_all);
  EXPECT_LE(finished, static_cast<double>(trace.requests.size()));
}

}  // namespace
}  // namespace octavo::fleet
