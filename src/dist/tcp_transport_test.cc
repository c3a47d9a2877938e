#include "dist/tcp_transport.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/testing/eventually.h"
#include "dist/message_group.h"
#include "dist/tcp_socket.h"

namespace octavo {
namespace {

struct Pair {
  std::unique_ptr<TcpTransport> first, second;
};

Pair pair() {
  const std::pair<Socket, int> port = reserve_port().value();
  const auto at = [&](int rank) {
    return TcpTransport::meet({.rank = rank, .size = 2, .address = "127.0.0.1", .port = port.second}).value();
  };
  Pair both;
  std::jthread other([&] { both.second = at(1); });
  both.first = at(0);
  return both;
}

TEST(TcpTransport, ARankThatDoesNotAnswerIsAnError) {
  const Pair both = pair();
  MessageGroup group(*both.first, {0, 1});
  group.set_timeout_ms(100);
  std::vector<float> values(4, 1);
  group.all_reduce(values);
  ASSERT_TRUE(group.failure());
  EXPECT_EQ(group.failure()->message, "rank 1 has not answered for 100 ms");
  group.barrier();
}

TEST(TcpTransport, ARankThatIsGoneIsAnError) {
  Pair both = pair();
  both.second.reset();
  MessageGroup group(*both.first, {0, 1});
  group.barrier();
  ASSERT_TRUE(group.failure());
  EXPECT_EQ(group.failure()->message, "rank 1 has stopped: the connection was closed");
}

TEST(TcpTransport, WhoIsGoneIsFoundOutWithoutAMessage) {
  Pair both = pair();
  EXPECT_TRUE(both.first->check());
  std::vector<std::byte> unread(100);
  const Transport::Send send[] = {{0, unread}};
  ASSERT_TRUE(both.second->exchange(send, {}, 0));
  EXPECT_TRUE(both.first->check());
  both.second.reset();
  Result<> gone;
  ASSERT_TRUE(eventually([&] { return !(gone = both.first->check()); }));
  EXPECT_EQ(gone.error().message, "rank 1 has stopped: the connection was closed");
}

TEST(TcpTransport, ARankThatIsGoneEndsAWaitForAnother) {
  const std::pair<Socket, int> port = reserve_port().value();
  std::unique_ptr<TcpTransport> ranks[3];
  {
    std::vector<std::jthread> meeting;
    for (int rank = 0; rank < 3; ++rank)
      meeting.emplace_back([&, rank] {
        ranks[rank] =
            TcpTransport::meet({.rank = rank, .size = 3, .address = "127.0.0.1", .port = port.second})
                .value();
      });
  }
  ranks[2].reset();
  std::byte byte{};
  const Transport::Receive receive[] = {{1, {&byte, 1}}};
  const Result<> received = ranks[0]->exchange({}, receive, 0);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().message, "rank 2 has stopped: the connection was closed");
}

// The messages exceed the buffers of the operating system.
TEST(TcpTransport, RanksThatBothSendFirstDoNotWaitForEachOther) {
  const Pair both = pair();
  const std::vector<std::byte> much(32 << 20, std::byte{7});
  const auto send_then_receive = [&](Transport& own, int other) {
    std::vector<std::byte> theirs(much.size());
    const Transport::Send send[] = {{other, much}};
    ASSERT_TRUE(own.exchange(send, {}, 60'000));
    const Transport::Receive receive[] = {{other, theirs}};
    ASSERT_TRUE(own.exchange({}, receive, 60'000));
    EXPECT_TRUE(theirs == much);
  };
  // A rank that has sent everything begins to receive at once, so that the other rank can send.
  std::jthread thread([&] { send_then_receive(*both.second, 0); });
  send_then_receive(*both.first, 1);
}

TEST(TcpTransport, WhoDoesNotBelongIsToldAndCostsTheOthersNothing) {
  const std::pair<Socket, int> port = reserve_port().value();
  const auto at = [&](int rank, int size, const char* identity) {
    return TcpTransport::meet(
        {.rank = rank, .size = size, .address = "127.0.0.1", .port = port.second, .identity = identity});
  };
  std::jthread host([&] { EXPECT_TRUE(at(0, 2, "a model")); });
  const auto other_model = at(1, 2, "another model");
  ASSERT_FALSE(other_model);
  EXPECT_EQ(
      other_model.error().message,
      "rank 1 of 2 does not belong to the 2 ranks here: start all ranks with the same model and options");
  EXPECT_FALSE(at(3, 4, "a model"));
  EXPECT_TRUE(at(1, 2, "a model"));
}

TEST(TcpTransport, AWaitForOtherRanksEndsWithTheErrorOfItsCheck) {
  const std::pair<Socket, int> port = reserve_port().value();
  for (const int rank : {0, 1}) {
    int checks = 0;
    const auto met = TcpTransport::meet(
        {.rank = rank, .size = 2, .address = "127.0.0.1", .port = port.second, .check = [&]() -> Result<> {
           if (++checks < 3) return {};
           return failure(ErrorCode::unavailable, "a child has ended");
         }});
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().message, "a child has ended");
  }
}

TEST(TcpTransport, ArrivalsAreMessagesAndEnds) {
  Pair both = pair();
  EXPECT_FALSE(both.first->has_arrivals());
  std::vector<std::byte> message(100), received(100);
  const Transport::Send send[] = {{0, message}};
  ASSERT_TRUE(both.second->exchange(send, {}, 0));
  while (!both.first->has_arrivals()) std::this_thread::yield();
  const Transport::Receive part[] = {{1, std::span(received).first(40)}};
  const Transport::Receive rest[] = {{1, std::span(received).subspan(40)}};
  ASSERT_TRUE(both.first->exchange({}, part, 0));
  EXPECT_TRUE(both.first->has_arrivals()) << "a part of the message is left";
  ASSERT_TRUE(both.first->exchange({}, rest, 0));
  EXPECT_FALSE(both.first->has_arrivals());
  both.second.reset();
  while (!both.first->has_arrivals()) std::this_thread::yield();
}

TEST(TcpSocket, AReservedPortIsFreeForItsOwnListenerOnly) {
  const auto [reservation, port] = reserve_port().value();
  const TcpAddress address = resolve("address", "127.0.0.1", port).value();
  for (int time = 0; time < 2; ++time) {
    const auto listener = listen_at(address);
    EXPECT_TRUE(listener);
    EXPECT_FALSE(listen_at(address));
  }
  for (int i = 0; i < 100; ++i) EXPECT_NE(reserve_port().value().second, port);
}

}  // namespace
}  // namespace octavo
