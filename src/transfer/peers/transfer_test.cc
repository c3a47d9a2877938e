// Tests a block server and a fetcher over all transports.
#include <gtest/gtest.h>

#include <thread>

#include "transfer/testing/peer_rig.h"

namespace octavo {
namespace {

using namespace peer_rig;

class Transports : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!GetParam().ucx) return;
    if (const auto channel = open_ucx_channel(); !channel) GTEST_SKIP() << channel.error().message;
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Transports,
                         testing::Values(Way{"shared_memory"}, Way{"tcp", false, true},
                                         Way{"tcp_other_layout", false}, Way{"ucx", false, true, true}),
                         [](const auto& test) { return test.param.name; });

TEST_P(Transports, BlocksArriveAsTheyAre) {
  Producer producer(GetParam());
  for (const int first : {0, 13, kBlocks - 1}) {
    Consumer consumer;
    const LoadResult result = consumer.fetch(task_for(producer.server->port(), first), GetParam());
    EXPECT_EQ(result.failure, std::nullopt) << result.message;
    EXPECT_EQ(result.id, 3u);
    EXPECT_EQ(result.loaded, kBlocks - first);
    EXPECT_EQ(result.bytes, (kBlocks - first) * kFormat.bytes);
    EXPECT_TRUE(consumer.right);
    EXPECT_EQ(std::ssize(consumer.written), kBlocks - first);
    // Waits until the lease has ended, and adds a new lease for the next iteration.
    while (producer.finished == 0) std::this_thread::yield();
    EXPECT_EQ(producer.leases.take_ended(now_us()), std::vector<std::uint64_t>{9});
    producer.finished = 0;
    Lease again{.keys = some_keys(), .owner = 9};
    for (int b = 0; b < kBlocks; ++b) again.blocks.push_back({.number = 100 + b});
    producer.leases.add("r", std::move(again), now_us());
  }
}

TEST_P(Transports, WhatDoesNotFitIsRefusedByName) {
  Producer producer(GetParam());
  const auto failure = [&](LoadTask task, const BlockFormat& format = kFormat) {
    Consumer consumer;
    const LoadResult result = consumer.fetch(std::move(task), GetParam(), format);
    EXPECT_EQ(result.loaded, 0);
    EXPECT_TRUE(consumer.written.empty());
    EXPECT_NE(result.message, "");
    return result.failure;
  };
  const int port = producer.server->port();
  BlockFormat other = kFormat;
  other.fingerprint = "another";
  EXPECT_EQ(failure(task_for(port), other), KvTransferFailure::mismatch);
  LoadTask tokens = task_for(port);
  tokens.keys.back().low += 1;
  EXPECT_EQ(failure(std::move(tokens)), KvTransferFailure::mismatch);
  LoadTask longer = task_for(port);
  longer.keys = some_keys(kBlocks + 1);
  longer.blocks.push_back({.number = kBlocks});
  EXPECT_EQ(failure(std::move(longer)), KvTransferFailure::mismatch);
  LoadTask request = task_for(port);
  request.from.remote_request_id = "another";
  EXPECT_EQ(failure(std::move(request)), KvTransferFailure::expired);
  LoadTask engine = task_for(port);
  engine.from.remote_engine_id = "another";
  EXPECT_EQ(failure(std::move(engine)), KvTransferFailure::expired);
  // None of these failures ended the lease.
  EXPECT_EQ(Consumer().fetch(task_for(port), GetParam()).failure, std::nullopt);
}

// The producer's blocks have 16 tokens, the consumer's blocks more or fewer.
TEST(Transfer, BlocksOfAnotherSizeAreMadeOfThoseThatThereAre) {
  constexpr int kPlanes = 4, kTokenBytes = 1024, kHeld = kBlocks * 16;
  BlockFormat own = kFormat;
  own.planes = {{.count = kPlanes, .token_bytes = kTokenBytes}};
  const auto number = [](int plane, int token) { return static_cast<std::byte>(plane * 50 + token * 7); };
  const auto lay_out = [&](int first, int size, std::span<std::byte> out) {
    for (int plane = 0; plane < kPlanes; ++plane)
      for (int token = 0; token < size; ++token)
        std::ranges::fill(
            out.subspan(static_cast<std::size_t>((plane * size + token) * kTokenBytes), kTokenBytes),
            number(plane, first + token));
  };
  LeaseTable leases(30);
  const auto server =
      BlockServer::start(
          {.host = "127.0.0.1", .port = 0, .engine_id = "e", .format = own}, leases,
          [&](KvLocation from, std::span<std::byte> out) { lay_out((from.number - 100) * 16, 16, out); }, {},
          [] {})
          .value();
  // The producer has blocks for only the first kHeld tokens of this prompt.
  std::vector<TokenId> text(kHeld + 70);
  std::iota(text.begin(), text.end(), 1);
  for (const auto& [size, one_host] :
       {std::pair(32, true), std::pair(8, false), std::pair(48, true), std::pair(256, false)}) {
    Lease lease{.keys = some_keys(), .owner = 9, .text = text, .identity = {1, 2}};
    for (int b = 0; b < kBlocks; ++b) lease.blocks.push_back({.number = 100 + b});
    leases.add("r", std::move(lease), now_us());
    BlockFormat other = kFormat;
    other.block_size = size;
    other.bytes = kFormat.bytes / 16 * size;
    LoadTask task = task_for(server->port());
    task.keys = transfer_keys(text, {1, 2}, size);
    task.first = 1;
    task.blocks.clear();
    for (int b = 1; b < std::ssize(task.keys); ++b) task.blocks.push_back({.number = b});
    std::array<std::promise<LoadResult>, 2> results;
    bool right = true;
    BlockFetcher fetcher(
        other, one_host, false,
        [&](KvLocation to, std::span<const std::byte> bytes) {
          std::vector<std::byte> wanted(bytes.size());
          lay_out(to.number * size, size, wanted);
          right = right && std::ranges::equal(bytes, wanted);
        },
        {}, [&](LoadResult got) { results.at(got.id).set_value(std::move(got)); });
    LoadTask wrong = task;
    wrong.id = 0;
    wrong.keys.back().low += 1;
    fetcher.post(std::move(wrong));
    EXPECT_EQ(results[0].get_future().get().failure, KvTransferFailure::mismatch);
    task.id = 1;
    fetcher.post(std::move(task));
    const LoadResult got = results[1].get_future().get();
    EXPECT_EQ(got.failure, std::nullopt) << got.message;
    EXPECT_EQ(got.loaded, kHeld / size - 1) << size;
    EXPECT_TRUE(right) << size;
    while (leases.take_ended(now_us()).empty()) std::this_thread::yield();
  }
}

TEST(Transfer, ALeaseLastsWhileSomebodyWants) {
  Producer producer;
  const std::int64_t first_end = producer.leases.next_end_us();
  BlockFetcher fetcher(kFormat, true, false, {}, {}, {});
  LeaseKeeper keeper(std::chrono::milliseconds(60), [&](const auto& host, int port, const auto& leases) {
    return fetcher.renew(host, port, leases);
  });
  KvTransferParams unknown = task_for(producer.server->port()).from;
  unknown.remote_request_id = "another";
  keeper.keep(1, unknown);  // no effect, because the lease is unknown
  keeper.keep(2, task_for(producer.server->port()).from);
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (producer.leases.next_end_us() == first_end && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(producer.leases.next_end_us(), first_end);
  keeper.let_go(2);
  EXPECT_EQ(Consumer().fetch(task_for(producer.server->port())).failure, std::nullopt);
}

TEST(Transfer, NobodyListens) {
  int port = 0;
  close(listen_at("127.0.0.1", port).value());
  EXPECT_EQ(Consumer().fetch(task_for(port)).failure, KvTransferFailure::unreachable);
  LoadTask nowhere = task_for(port);
  nowhere.from.remote_host = "no.such.host.invalid";
  EXPECT_EQ(Consumer().fetch(std::move(nowhere)).failure, KvTransferFailure::unreachable);
}

TEST(Transfer, NothingWantedGivesTheLeaseBack) {
  Producer producer;
  BlockFetcher fetcher(kFormat, true, false, {}, {}, {});
  fetcher.post({.from = task_for(producer.server->port()).from});
  while (producer.finished == 0) std::this_thread::yield();
  EXPECT_EQ(producer.leases.take_ended(now_us()).size(), 1u);
}

}  // namespace
}  // namespace octavo
