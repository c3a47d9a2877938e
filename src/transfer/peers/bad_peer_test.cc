// Tests fetches from peers that die, hang or send wrong bytes.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "transfer/testing/peer_rig.h"

namespace octavo {
namespace {

using namespace peer_rig;

// A peer that calls `act` with one connection, then closes it.
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

// Sends `good` valid blocks, then the bytes `last` as a block. nullopt: closes the connection instead.
void give(PeerSocket& socket, int good, std::optional<std::vector<std::byte>> last) {
  (void)receive_message(socket);
  (void)send_message(socket, Ready{.blocks = kBlocks, .shared_memory = false});
  const auto get = std::get<Get>(receive_message(socket).value());
  (void)send_message(socket, Piece{get.first, get.count});
  for (int i = 0; i < good; ++i) (void)socket.send(packed_block(i, 100 + i));
  if (!last) return;
  (void)socket.send(*last);
  for (int i = good + 1; i < get.count; ++i) (void)socket.send(packed_block(i, 100 + i));
  // Before the socket is closed, reads all data: closing a socket with unread data would discard the sent
  // data.
  std::byte rest;
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

TEST(Transfer, APeerThatTakesForEverIsGivenUp) {
  BadPeer peer([](PeerSocket& s) {
    (void)receive_message(s);
    const std::uint32_t size = 60'000;  // bytes of a message that is never completed
    (void)s.send(std::as_bytes(std::span(&size, 1)));
    const std::byte letter{'{'};
    while (s.send(std::span(&letter, 1))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  Consumer consumer;
  consumer.times.answer = 300;
  const LoadResult result = consumer.fetch(task_for(peer.port));
  EXPECT_EQ(result.failure, KvTransferFailure::lost);
  EXPECT_TRUE(result.message.contains("took longer")) << result.message;
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

// Returns a channel, or null if UCX is not installed.
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
    (void)channel->send(std::span(&one, 1), s.fd());  // fewer pieces than requested
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

// Returns the failure of a fetch from a peer that calls `answer` instead of sending Ready.
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
  // The server continues to work after these bytes.
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

// The memory of another process is used only if it contains the secret.
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
