// Tests two simulated engines in this process. One engine computes prompts, and the other loads their
// blocks and decodes.
#include "engine/cache/kv_transfers.h"

#include <gmock/gmock.h>

#include "base/testing/eventually.h"
#include "engine/testing/kv_handover.h"
#include "engine/testing/rig.h"

namespace octavo {
namespace {

// The engines are simulated, so a wrong block causes a wrong token.
struct Pair {
  Rig producer, consumer;

  explicit Pair(const Setup& setup = {}, KvTransferOptions produces = transfer_options(true))
      : Pair(with(setup, std::move(produces)), with(setup, transfer_options(false))) {}
  Pair(const Setup& first, const Setup& second) : producer(first), consumer(second) {}
  static Setup with(Setup setup, KvTransferOptions options) {
    setup.kv_transfer = std::move(options);
    return setup;
  }

  std::shared_ptr<Recorder> decode(std::vector<TokenId> prompt, int tokens, KvTransferParams params) {
    Request request = request_for(std::move(prompt), tokens);
    request.kv_transfer = std::move(params);
    auto sink = std::make_shared<Recorder>();
    EXPECT_TRUE(consumer.engine->submit(std::move(request), sink));
    return sink;
  }
  void expect_nothing_held() {
    for (Rig* rig : {&producer, &consumer}) {
      EXPECT_TRUE(eventually([&] { return rig->engine->own_stats().kv_transfer.held_blocks == 0; }));
      rig->expect_empty();
    }
  }
};

class KvTransfersModes : public EngineModes {};
INSTANTIATE_TEST_SUITE_P(Modes, KvTransfersModes, EngineModes::all(), EngineModes::name);

TEST_P(KvTransfersModes, TheDecoderFindsThePromptInItsCache) {
  Pair pair({.mode = GetParam()});
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  const KvTransferParams params = prefill(*pair.producer.engine, request_for(prompt, 5));
  EXPECT_TRUE(params.do_remote_prefill);
  EXPECT_FALSE(params.do_remote_decode);
  EXPECT_EQ(params.remote_block_ids[0].size(), 6u);
  EXPECT_EQ(params.remote_num_tokens, 100);
  const auto sink = pair.decode(prompt, 20, params);
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, expected(prompt, 20));
  EXPECT_EQ(sink->record().ends[0].cached_tokens, 96);
  EXPECT_EQ(sink->record().ends[0].kv_transfer, std::nullopt);
  EXPECT_EQ(failures(*pair.consumer.engine), 0);
  EXPECT_TRUE(eventually([&] { return hits(*pair.consumer.engine) == 96; }));
  EXPECT_EQ(pair.producer.engine->own_stats().kv_transfer.expired, 0);
  pair.expect_nothing_held();
}

TEST_P(KvTransfersModes, ManyPromptsOnTightPoolsGetTheirOwnTokens) {
  // The pool is only a little larger than the longest request, so sequences are preempted, prompts wait for
  // free blocks, and holds are freed.
  const octavo::Setup tight{.num_blocks = 24, .max_tokens = 48, .max_model_len = 320, .mode = GetParam()};
  octavo::Setup roomy = tight;
  roomy.num_blocks = 1000;
  Pair pair(Pair::with(roomy, transfer_options(true)), Pair::with(tight, transfer_options(false)));
  std::mt19937 random(11);
  struct Wanted {
    std::shared_ptr<Recorder> sink;
    std::vector<TokenId> tokens;
  };
  std::vector<Wanted> all;
  for (int i = 0; i < 48; ++i) {
    std::vector<TokenId> prompt =
        some_prompt(i % 3 == 0 ? 1 : static_cast<unsigned>(i), 5 + static_cast<int>(random() % 200));
    const int count = 1 + static_cast<int>(random() % 100);
    KvTransferParams params = prefill(*pair.producer.engine, request_for(prompt, 1));
    std::vector<TokenId> tokens = expected(prompt, count);
    pair.consumer.learn(prompt, tokens);
    all.push_back({pair.decode(std::move(prompt), count, std::move(params)), std::move(tokens)});
  }
  for (const Wanted& wanted : all) {
    wanted.sink->wait_ended(1);
    EXPECT_EQ(wanted.sink->record().tokens, wanted.tokens);
  }
  EXPECT_GT(hits(*pair.consumer.engine), 500);
  EXPECT_EQ(failures(*pair.consumer.engine), failures(*pair.consumer.engine, KvTransferFailure::no_blocks));
  pair.expect_nothing_held();
}

// Both pools are small, so most leases end before the consumer has loaded the blocks.
TEST_P(KvTransfersModes, LostLeasesCostNoToken) {
  Pair pair({.num_blocks = 24, .max_tokens = 48, .max_model_len = 320, .mode = GetParam()});
  std::vector<std::pair<std::shared_ptr<Recorder>, std::vector<TokenId>>> all;
  for (unsigned i = 0; i < 16; ++i) {
    const std::vector<TokenId> prompt = some_prompt(i, 150);
    const KvTransferParams params = prefill(*pair.producer.engine, request_for(prompt, 1));
    pair.consumer.learn(prompt, expected(prompt, 30));
    all.emplace_back(pair.decode(prompt, 30, params), expected(prompt, 30));
  }
  for (const auto& [sink, tokens] : all) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, tokens);
  }
  pair.expect_nothing_held();
}

TEST(KvTransfers, OnlyWhatIsMissingIsFetched) {
  Pair pair;
  const std::vector<TokenId> prompt = some_prompt(1, 200);
  const std::vector<TokenId> beginning(prompt.begin(), prompt.begin() + 80);
  pair.decode(beginning, 1, {})->wait_ended(1);
  const auto sink = pair.decode(prompt, 5, prefill(*pair.producer.engine, request_for(prompt, 1)));
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, expected(prompt, 5));
  EXPECT_EQ(sink->record().ends[0].cached_tokens, 192);
  EXPECT_TRUE(eventually([&] { return hits(*pair.consumer.engine) == 192 - 80; }));
  // The second time, all blocks are cached, so the lease ends.
  pair.decode(prompt, 5, prefill(*pair.producer.engine, request_for(prompt, 1)))->wait_ended(1);
  EXPECT_EQ(hits(*pair.consumer.engine), 192 - 80);
  pair.expect_nothing_held();
  EXPECT_EQ(pair.producer.engine->own_stats().kv_transfer.expired, 0);
}

TEST(KvTransfers, SeveralAnswersShareWhatIsFetched) {
  Pair pair;
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  Request request = request_for(prompt, 10);
  request.sampling.n = 3;
  request.kv_transfer = prefill(*pair.producer.engine, request_for(prompt, 1));
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(pair.consumer.engine->submit(std::move(request), sink));
  sink->wait_ended(3);
  for (int index = 0; index < 3; ++index) {
    EXPECT_EQ(sink->record(index).tokens, expected(prompt, 10));
    EXPECT_EQ(sink->record(index).ends[0].cached_tokens, 96);
  }
  pair.expect_nothing_held();
}

// A client cannot guess the id of a lease.
TEST(KvTransfers, EachLeaseHasASecretName) {
  Pair pair;
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  KvTransferParams params = prefill(*pair.producer.engine, request_for(prompt, 1));
  const KvTransferParams other = prefill(*pair.producer.engine, request_for(some_prompt(2, 100), 1));
  const auto secret = [](const KvTransferParams& p) {
    return p.remote_request_id.substr(p.remote_request_id.rfind('-') + 1);
  };
  EXPECT_EQ(secret(params).size(), 32u);
  EXPECT_NE(secret(params), secret(other));
  params.remote_request_id.back() = params.remote_request_id.back() == '0' ? '1' : '0';
  const auto sink = pair.decode(prompt, 5, params);
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, expected(prompt, 5));
  EXPECT_TRUE(eventually([&] { return failures(*pair.consumer.engine, KvTransferFailure::expired) == 1; }));
}

TEST(KvTransfers, APromptOfAnotherTextIsNotTaken) {
  Pair pair;
  const KvTransferParams params = prefill(*pair.producer.engine, request_for(some_prompt(1, 100), 1));
  const std::vector<TokenId> other = some_prompt(2, 100);
  const auto sink = pair.decode(other, 5, params);
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, expected(other, 5));
  EXPECT_EQ(sink->record().ends[0].cached_tokens, 0);
  EXPECT_TRUE(eventually([&] { return failures(*pair.consumer.engine, KvTransferFailure::mismatch) == 1; }));
  EXPECT_TRUE(eventually([&] { return pair.producer.engine->own_stats().kv_transfer.held_blocks > 0; }));
}

TEST(KvTransfers, SaltsKeepPromptsApart) {
  Pair pair;
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  Request salted = request_for(prompt, 5);
  salted.identity.salt = "tenant";
  const KvTransferParams params = prefill(*pair.producer.engine, salted);
  pair.decode(prompt, 5, params)->wait_ended(1);
  EXPECT_TRUE(eventually([&] { return failures(*pair.consumer.engine, KvTransferFailure::mismatch) == 1; }));
  salted.kv_transfer = params;
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(pair.consumer.engine->submit(std::move(salted), sink));
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().ends[0].cached_tokens, 96);
}

TEST(KvTransfers, WithoutItsProducerThePromptIsComputed) {
  Pair pair;
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  const KvTransferParams params = prefill(*pair.producer.engine, request_for(prompt, 1));
  pair.producer.engine.reset();
  const auto sink = pair.decode(prompt, 5, params);
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, expected(prompt, 5));
  EXPECT_EQ(sink->record().ends[0].finished, FinishReason::length);
  EXPECT_TRUE(
      eventually([&] { return failures(*pair.consumer.engine, KvTransferFailure::unreachable) == 1; }));
  pair.consumer.expect_empty();
}

TEST(KvTransfers, ParamsThatNameNoBlocksAreComputed) {
  Pair pair;
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  const KvTransferParams good = prefill(*pair.producer.engine, request_for(prompt, 1));
  for (auto spoil :
       {+[](KvTransferParams& p) { p.remote_engine_id = ""; },
        +[](KvTransferParams& p) { p.remote_request_id = ""; },
        +[](KvTransferParams& p) { p.remote_host = ""; }, +[](KvTransferParams& p) { p.remote_port = 0; },
        +[](KvTransferParams& p) { p.remote_block_ids = {{}}; },
        +[](KvTransferParams& p) { p.remote_block_ids.clear(); }}) {
    KvTransferParams params = good;
    spoil(params);
    const auto sink = pair.decode(prompt, 5, params);
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, expected(prompt, 5));
  }
  EXPECT_EQ(failures(*pair.consumer.engine), 0);
}

TEST(KvTransfers, LeasesEndByThemselves) {
  KvTransferOptions options = transfer_options(true);
  options.lease_seconds = 1;
  Pair pair({}, options);
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  const KvTransferParams params = prefill(*pair.producer.engine, request_for(prompt, 1));
  EXPECT_TRUE(eventually([&] { return pair.producer.engine->own_stats().kv_transfer.expired == 1; }));
  const auto sink = pair.decode(prompt, 5, params);
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, expected(prompt, 5));
  EXPECT_TRUE(eventually([&] { return failures(*pair.consumer.engine, KvTransferFailure::expired) == 1; }));
  pair.expect_nothing_held();
}

// Leases fill the pool. A request that needs blocks gets them immediately, not after the leases expire (30
// s).
TEST(KvTransfers, LeasesGiveWayToRequests) {
  Pair pair({.num_blocks = 40});
  for (unsigned i = 0; i < 12; ++i) prefill(*pair.producer.engine, request_for(some_prompt(i, 200), 1));
  const std::vector<TokenId> prompt = some_prompt(99, 300);
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(pair.producer.engine->submit(request_for(prompt, 200), sink));
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, expected(prompt, 200));
  EXPECT_TRUE(eventually([&] { return pair.producer.engine->own_stats().kv_transfer.expired >= 9; }));
}

TEST(KvTransfers, AbortsAtAnyMomentFreeEverything) {
  Pair pair;
  for (unsigned i = 0; i < 60; ++i) {
    const std::vector<TokenId> prompt = some_prompt(i, 300);
    Request request = request_for(prompt, 100);
    request.kv_transfer = prefill(*pair.producer.engine, request);
    auto sink = std::make_shared<Recorder>();
    const auto id = pair.consumer.engine->submit(std::move(request), sink);
    ASSERT_TRUE(id);
    std::this_thread::sleep_for(std::chrono::microseconds(i * 20));
    pair.consumer.engine->abort(*id);
    sink->wait_ended(1);
  }
  pair.expect_nothing_held();
}

TEST(KvTransfers, AnEngineThatFetchesCanBeStopped) {
  auto pair = std::make_unique<Pair>();
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (unsigned i = 0; i < 8; ++i) {
    const std::vector<TokenId> prompt = some_prompt(i, 300);
    sinks.push_back(pair->decode(prompt, 100, prefill(*pair->producer.engine, request_for(prompt, 1))));
  }
  pair.reset();
  for (const auto& sink : sinks) EXPECT_TRUE(sink->wait_ended(1));
}

TEST(KvTransfers, WhatCannotBeDoneIsRefusedAtTheStart) {
  const auto field = [](const octavo::Setup& setup) {
    SchedulerOptions options;
    options.num_blocks = setup.num_blocks;
    options.max_model_len = setup.max_model_len;
    options.enable_prefix_caching = setup.prefix_caching;
    auto executor = std::make_unique<SimulatedExecutor>(
        SimulatedExecutorOptions{kVocab, kBlock, setup.num_blocks, false});
    const auto engine =
        Engine::start(options, {}, {.executor = std::move(executor), .kv_transfer = setup.kv_transfer});
    return engine ? "" : engine.error().field;
  };
  EXPECT_EQ(field({.kv_transfer = transfer_options(true)}), "");
  EXPECT_EQ(field({.prefix_caching = false, .kv_transfer = transfer_options(true)}), "kv_transfer_config");
  KvTransferOptions anywhere = transfer_options(true);
  anywhere.host = "0.0.0.0";
  EXPECT_EQ(field({.kv_transfer = anywhere}), "kv_transfer_config");
  anywhere.host = "192.0.2.1";  // an address of another machine
  EXPECT_EQ(field({.kv_transfer = anywhere}), "kv_transfer_config");
}

}  // namespace
}  // namespace octavo
