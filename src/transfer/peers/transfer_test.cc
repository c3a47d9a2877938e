// A block server and a fetcher, over all transports, and with failing peers.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <future>
#include <numeric>

#include "base/clock.h"
#include "transfer/peers/block_fetcher.h"
#include "transfer/peers/block_server.h"
#include "transfer/peers/lease_keeper.h"

namespace octavo {
namespace {

// Large enough that a prompt takes several pieces.
const BlockFormat kFormat{.fingerprint = "m", .dtype = "bf16", .block_size = 16, .bytes = 64 << 10};
constexpr int kBlocks = 40;

std::byte content(std::int32_t block) { return static_cast<std::byte>(block * 7 + 1); }

std::vector<Hash128> some_keys(int count = kBlocks) {
  std::vector<Hash128> keys;
  for (int i = 0; i < count; ++i) keys.push_back({static_cast<std::uint64_t>(i), 5});
  return keys;
}

// Transport. native: both engines have the same layout; native blocks are slightly larger than their
// contents.
struct Way {
  const char* name;
  bool one_host = true;
  bool native = false;
  bool ucx = false;
};
constexpr std::size_t kNativeBytes = (64 << 10) + 64;

struct Producer {
  std::vector<std::byte> memory;
  LeaseTable leases{30};
  std::atomic<int> finished = 0;
  std::unique_ptr<BlockServer> server;

  explicit Producer(const Way& way = {}) : memory(way.native ? kBlocks * kNativeBytes : 0) {
    NativeBlocks native;
    if (way.native)
      native = {.layout = "alike", .memory = [this](KvPlace from) {
                  const auto place = static_cast<std::size_t>(from.number - 100);
                  const auto bytes = std::span(memory).subspan(place * kNativeBytes, kNativeBytes);
                  std::ranges::fill(bytes, content(from.number));
                  return bytes;
                }};
    server = BlockServer::start(
                 {.host = "127.0.0.1", .port = 0, .engine_id = "e", .format = kFormat}, leases,
                 [](KvPlace from, std::span<std::byte> out) {
                   std::memset(out.data(), static_cast<int>(content(from.number)), out.size());
                 },
                 native, [this] { ++finished; })
                 .value();
    Lease lease{.keys = some_keys(), .owner = 9};
    for (int b = 0; b < kBlocks; ++b) lease.blocks.push_back({.number = 100 + b});
    leases.add("r", std::move(lease), now_us());
  }
};

LoadTask task_for(int port, int first = 0) {
  LoadTask task{.id = 3,
                .from = {.remote_engine_id = "e",
                         .remote_request_id = "r",
                         .remote_host = "127.0.0.1",
                         .remote_port = port},
                .first = first,
                .keys = some_keys(),
                .cancelled = std::make_shared<std::atomic<bool>>(false)};
  for (int b = first; b < kBlocks; ++b) task.blocks.push_back({.number = b});
  return task;
}

struct Consumer {
  PeerTimes times{};
  std::mutex mutex;
  std::vector<std::int32_t> written;
  std::vector<std::byte> memory;
  bool right = true;

  std::span<std::byte> block_memory(std::int32_t block) {
    return std::span(memory).subspan(static_cast<std::size_t>(block) * kNativeBytes, kNativeBytes);
  }
  LoadResult fetch(LoadTask task, const Way& way = {}, const BlockFormat& format = kFormat) {
    std::promise<LoadResult> result;
    NativeBlocks native;
    if (way.native) {
      memory.resize(kBlocks * kNativeBytes);
      native = {.layout = "alike", .memory = [this](KvPlace to) {
                  written.push_back(to.number);
                  return block_memory(to.number);
                }};
    }
    BlockFetcher fetcher(
        format, way.one_host, way.ucx,
        [&](KvPlace to, std::span<const std::byte> bytes) {
          const std::lock_guard lock(mutex);
          written.push_back(to.number);
          right =
              right && std::ranges::all_of(bytes, [&](std::byte b) { return b == content(100 + to.number); });
        },
        native, [&](LoadResult got) { result.set_value(std::move(got)); }, times);
    fetcher.post(std::move(task));
    LoadResult got = result.get_future().get();
    if (way.native)
      for (const std::int32_t block : std::span(written).first(static_cast<std::size_t>(got.loaded)))
        right = right && std::ranges::all_of(block_memory(block),
                                             [&](std::byte b) { return b == content(100 + block); });
    return got;
  }
};

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
    // Waits for the end of the lease, and adds another for the next round.
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

// Blocks of 16 tokens here, and of more or fewer at the consumer.
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
          [&](KvPlace from, std::span<std::byte> out) { lay_out((from.number - 100) * 16, 16, out); }, {},
          [] {})
          .value();
  std::vector<TokenId> text(kHeld + 70);  // a prompt that is only partly held
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
    std::array<std::promise<LoadResult>, 2> results;  // by the task's id
    bool right = true;
    BlockFetcher fetcher(
        other, one_host, false,
        [&](KvPlace to, std::span<const std::byte> bytes) {
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
  LeaseKeeper keeper(std::chrono::milliseconds(60));
  KvTransferParams unknown = task_for(producer.server->port()).from;
  unknown.remote_request_id = "another";
  keeper.keep(1, unknown);  // an unknown lease is ignored
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

// A peer that follows a script for one connection, then closes it.
class BadPeer {
 public:
  explicit BadPeer(std::function<void(PeerSocket&)> act) {
    listening_ = listen_at("127.0.0.1", port).value();
    thread_ = std::thread([this, act = std::move(act)] {
      PeerSocket socket(accept(listening_, nullptr, nullptr));
      act(socket);
    });
  }
  ~BadPeer() {
    thread_.join();
    close(listening_);
  }
  int port = 0;

 private:
  int listening_ = -1;
  std::thread thread_;
};

std::vector<std::byte> packed_block(int number, std::int32_t block) {
  std::vector<std::byte> packed(kFormat.stride());
  std::ranges::fill(contents(kFormat, std::span(packed)), content(block));
  seal(kFormat, some_keys()[static_cast<std::size_t>(number)], packed);
  return packed;
}

// Sends `good` blocks of the first piece, then `last` instead of the next one.
void give(PeerSocket& socket, int good, std::optional<std::vector<std::byte>> last) {
  (void)receive_message(socket);
  (void)send_message(socket, Ready{.blocks = kBlocks, .shared_memory = false});
  const auto get = std::get<Get>(receive_message(socket).value());
  (void)send_message(socket, Piece{get.first, get.count});
  for (int i = 0; i < good; ++i) (void)socket.send(packed_block(i, 100 + i));
  if (!last) return;
  (void)socket.send(*last);
  for (int i = good + 1; i < get.count; ++i) (void)socket.send(packed_block(i, 100 + i));
  std::byte rest;  // closing with unread data would discard the sent data
  while (socket.receive(std::span(&rest, 1))) {
  }
}

TEST(Transfer, APeerThatDiesAtAnyMomentIsNoticed) {
  const std::function<void(PeerSocket&)> moments[] = {
      [](PeerSocket&) {},
      [](PeerSocket& s) { (void)receive_message(s); },
      [](PeerSocket& s) {
        (void)receive_message(s);
        (void)send_message(s, Ready{.blocks = kBlocks});
      },
      [](PeerSocket& s) { give(s, 0, std::nullopt); },
      [](PeerSocket& s) { give(s, 2, std::nullopt); },
  };
  for (const auto& moment : moments) {
    BadPeer peer(moment);
    Consumer consumer;
    const LoadResult result = consumer.fetch(task_for(peer.port));
    EXPECT_EQ(result.failure, KvTransferFailure::lost);
    EXPECT_EQ(result.loaded, 0);
  }
}

// The peer is never silent for long.
TEST(Transfer, APeerThatTakesForEverIsGivenUp) {
  BadPeer peer([](PeerSocket& s) {
    (void)receive_message(s);
    const std::uint32_t size = 60'000;  // size of a message, sent byte by byte
    (void)s.send(std::as_bytes(std::span(&size, 1)));
    const std::byte letter{'{'};
    while (s.send(std::span(&letter, 1))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  Consumer consumer;
  consumer.times.answer = 300;
  const LoadResult result = consumer.fetch(task_for(peer.port));
  EXPECT_EQ(result.failure, KvTransferFailure::lost);
  EXPECT_TRUE(result.message.contains("takes longer")) << result.message;
}

TEST(Transfer, WrongBytesAreNotTakenAndWhatCameBeforeIs) {
  std::vector<std::byte> wrong = packed_block(2, 102);
  wrong.back() ^= std::byte{1};
  wrong[kFormat.stride() - 1000] ^= std::byte{1};
  BadPeer peer([&](PeerSocket& s) { give(s, 2, wrong); });
  Consumer consumer;
  const LoadResult result = consumer.fetch(task_for(peer.port));
  EXPECT_EQ(result.failure, KvTransferFailure::corrupt);
  EXPECT_EQ(result.loaded, 2);
  EXPECT_EQ(consumer.written, (std::vector<std::int32_t>{0, 1}));
  BadPeer other([&](PeerSocket& s) { give(s, 1, packed_block(3, 103)); });
  EXPECT_EQ(Consumer().fetch(task_for(other.port)).failure, KvTransferFailure::mismatch);
}

TEST(Transfer, WrongBytesInPlaceAreNotTakenEither) {
  const Way way{"tcp", false, true};
  BadPeer peer([&](PeerSocket& s) {
    (void)receive_message(s);
    (void)send_message(s, Ready{.blocks = kBlocks, .layout = "alike"});
    const auto get = std::get<Get>(receive_message(s).value());
    EXPECT_EQ(get.way, BlockWay::native);
    (void)send_message(s, Piece{get.first, get.count});
    std::vector<std::byte> block(kNativeBytes, content(100));
    const BlockHeader header = header_of(kFormat.digest(), some_keys()[0], block);
    for (int i = 0; i < get.count; ++i) (void)s.send(header);
    block[5] ^= std::byte{1};
    (void)s.send(block);
    std::byte rest;
    while (s.receive(std::span(&rest, 1))) {
    }
  });
  const LoadResult result = Consumer().fetch(task_for(peer.port), way);
  EXPECT_EQ(result.failure, KvTransferFailure::corrupt);
  EXPECT_EQ(result.loaded, 0);
}

// A channel, or null if UCX is not installed.
std::unique_ptr<UcxChannel> ucx_channel() {
  auto channel = open_ucx_channel();
  return channel ? *std::move(channel) : nullptr;
}

TEST(Transfer, APeerThatDiesWhileItSendsOverUcxIsNoticed) {
  if (ucx_channel() == nullptr) GTEST_SKIP() << open_ucx_channel().error().message;
  const Way way{"ucx", false, true, true};
  BadPeer peer([&](PeerSocket& s) {
    const auto pull = std::get<Pull>(receive_message(s).value());
    const auto channel = ucx_channel();
    ASSERT_TRUE(channel->connect(pull.ucx));
    (void)send_message(s, Ready{.blocks = kBlocks, .layout = "alike", .ucx = true});
    const auto get = std::get<Get>(receive_message(s).value());
    (void)send_message(s, Piece{get.first, get.count});
    const std::vector<std::byte> block(kNativeBytes, content(100));
    const BlockHeader header = header_of(kFormat.digest(), some_keys()[0], block);
    for (int i = 0; i < get.count; ++i) (void)s.send(header);
    const std::span<const std::byte> one = block;
    (void)channel->send(std::span(&one, 1), s.fd());  // only some of the pieces
  });
  const LoadResult result = Consumer().fetch(task_for(peer.port), way);
  EXPECT_EQ(result.failure, KvTransferFailure::lost);
  EXPECT_EQ(result.loaded, 0);
}

TEST(Transfer, AConsumerThatDiesWhileItIsSentToOverUcxIsNoticed) {
  if (ucx_channel() == nullptr) GTEST_SKIP() << open_ucx_channel().error().message;
  const Way way{"ucx", false, true, true};
  Producer producer(way);
  {
    PeerSocket socket = PeerSocket::connect("127.0.0.1", producer.server->port()).value();
    const auto channel = ucx_channel();
    ASSERT_TRUE(send_message(socket, Pull{.format = kFormat,
                                          .engine_id = "e",
                                          .request_id = "r",
                                          .blocks = kBlocks,
                                          .key = some_keys().back(),
                                          .ucx = channel->address()}));
    EXPECT_TRUE(std::get<Ready>(receive_message(socket).value()).ucx);
    ASSERT_TRUE(send_message(socket, Get{.first = 0, .count = 3, .way = BlockWay::native}));
    ASSERT_TRUE(receive_message(socket));
  }
  EXPECT_EQ(Consumer().fetch(task_for(producer.server->port()), way).failure, std::nullopt);
}

// Failure after another engine's response that replaces Ready.
KvTransferFailure failure_after(const std::function<void(PeerSocket&)>& answer) {
  BadPeer peer([&](PeerSocket& s) {
    (void)receive_message(s);
    answer(s);
  });
  return Consumer().fetch(task_for(peer.port)).failure.value();
}

TEST(Transfer, NonsenseIsAnError) {
  for (const std::string_view bytes : {"", "{}", "12345678", "12345678\x01", R"({"kind": "ready"})"}) {
    const auto failed = failure_after([&](PeerSocket& s) {
      const auto size = static_cast<std::uint32_t>(bytes.size());
      (void)s.send(std::as_bytes(std::span(&size, 1)));
      (void)s.send(std::as_bytes(std::span(bytes)));
    });
    EXPECT_EQ(failed, KvTransferFailure::corrupt) << bytes;
  }
  const TransferMessage out_of_range[] = {Piece{.first = -1, .count = 2}, Ready{.blocks = -1},
                                          Refused{static_cast<KvTransferFailure>(99), "x"},
                                          Get{.way = static_cast<BlockWay>(2)}};
  for (const TransferMessage& message : out_of_range)
    EXPECT_EQ(failure_after([&](PeerSocket& s) { (void)send_message(s, message); }),
              KvTransferFailure::corrupt);
  // A server gets the same, and continues to work.
  Producer producer;
  for (const std::uint32_t size : {0u, 3u, 1u << 31}) {
    PeerSocket socket = PeerSocket::connect("127.0.0.1", producer.server->port()).value();
    ASSERT_TRUE(socket.send(std::as_bytes(std::span(&size, 1))));
    ASSERT_TRUE(socket.send(std::as_bytes(std::span("abc"))));
    std::byte end;
    EXPECT_FALSE(socket.receive(std::span(&end, 1)));
  }
  for (const Get& wrong :
       {Get{.first = kBlocks - 1, .count = 2}, Get{.first = 0, .count = 1, .way = BlockWay::native}}) {
    PeerSocket socket = PeerSocket::connect("127.0.0.1", producer.server->port()).value();
    ASSERT_TRUE(send_message(socket, Pull{.format = kFormat,
                                          .engine_id = "e",
                                          .request_id = "r",
                                          .blocks = kBlocks,
                                          .key = some_keys().back()}));
    ASSERT_TRUE(receive_message(socket));
    ASSERT_TRUE(send_message(socket, wrong));
    EXPECT_FALSE(receive_message(socket));
  }
  EXPECT_EQ(Consumer().fetch(task_for(producer.server->port())).failure, std::nullopt);
}

// Memory of another process is used only if it contains the secret.
TEST(Transfer, AnotherSegmentThanOfferedIsNotOpened) {
  const TransferSlots slots = TransferSlots::create(4096).value();
  EXPECT_NE(shared_memory_sender(slots.offer()), nullptr);
  SegmentOffer offer = slots.offer();
  offer.secret[0] ^= 1;
  EXPECT_EQ(shared_memory_sender(offer), nullptr);
  offer = slots.offer();
  offer.slot_bytes *= 2;
  EXPECT_EQ(shared_memory_sender(offer), nullptr);
  offer = slots.offer();
  offer.descriptor = 0;
  EXPECT_EQ(shared_memory_sender(offer), nullptr);
  EXPECT_EQ(shared_memory_sender({}), nullptr);
}

}  // namespace
}  // namespace octavo
