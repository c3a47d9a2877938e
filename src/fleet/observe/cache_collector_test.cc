#include "fleet/observe/cache_collector.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <zmq.hpp>

#include "base/testing/scratch_directory.h"
#include "fleet/index/held_blocks.h"

namespace octavo::fleet {
namespace {

using namespace std::string_literals;

class Collecting : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"10.0.0.1:8000", "10.0.0.2:8000"}) EXPECT_TRUE(fleet.add({.name = name}));
    collector = CacheCollector::start(
                    endpoint, "kv@", fleet,
                    [this](const Member& member, std::span<const CacheEvent> events, const CachePosition&) {
                      const std::lock_guard lock(mutex);
                      for (const CacheEvent& event : events) held.apply(member.id, event);
                    },
                    "field")
                    .value();
    engine.set(zmq::sockopt::linger, 0);
    engine.connect(endpoint);
  }

  // Sends one block of two tokens without a parent: [0.0, [["BlockStored", [name], nil, [name, 7], 2,
  // nil]], rank]. A negative rank is sent as nil.
  void publish(const std::string& topic, std::uint64_t number, char name, int rank = -1) {
    const std::string batch =
        "\x93\xcb\0\0\0\0\0\0\0\0\x91\x96\xab"
        "BlockStored\x91"s +
        name + "\xc0\x92"s + name + "\x07\x02\xc0"s + (rank < 0 ? '\xc0' : static_cast<char>(rank));
    const std::uint64_t swapped = __builtin_bswap64(number);
    engine.send(zmq::buffer(topic), zmq::send_flags::sndmore);
    engine.send(zmq::buffer(&swapped, sizeof swapped), zmq::send_flags::sndmore);
    engine.send(zmq::buffer(batch));
  }

  std::size_t blocks(EndpointId id) {
    const std::lock_guard lock(mutex);
    return held.blocks(id);
  }
  bool soon_holds(EndpointId id, std::size_t count) {
    for (int i = 0; i < 6000 && blocks(id) != count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return blocks(id) == count;
  }

  ScratchDirectory scratch;
  const std::string endpoint = "ipc://" + (scratch.path() / "events").string();
  Fleet fleet;
  std::mutex mutex;
  HeldBlocks held{1000};
  std::unique_ptr<CacheCollector> collector;
  zmq::context_t context{1};
  zmq::socket_t engine{context, zmq::socket_type::pub};
};

TEST_F(Collecting, AddressesOfVersion6HaveBracketsOrNone) {
  EXPECT_TRUE(fleet.add({.name = "[fd00::1]:8000"}));
  std::uint64_t number = 0;
  for (; number < 6000 && blocks(2) == 0; ++number) {
    publish("kv@[fd00::1]:8000@m", number, 'a');
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  publish("kv@fd00::1:8000@m", number++, 'b');
  EXPECT_TRUE(soon_holds(2, 2));
  publish("kv@fd00::1@m", number++, 'c');
  EXPECT_TRUE(soon_holds(2, 3));
  publish("kv@[fd00::1]@m", number++, 'd');
  EXPECT_TRUE(soon_holds(2, 4));
  publish("kv@fd00::2:8000@m", number, 'e');  // topic of an unknown endpoint
  publish("kv@[fd00::1]:8000@m", number++, 'f');
  EXPECT_TRUE(soon_holds(2, 5));
}

TEST_F(Collecting, ATopicSaysWhoseEventsTheyAre) {
  std::uint64_t number = 0;  // the first messages may be lost, because the subscription takes time
  for (; number < 6000 && blocks(1) == 0; ++number) {
    publish("kv@10.0.0.2:8000@m", number, 'a');
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(soon_holds(1, 1));
  EXPECT_EQ(blocks(0), 0U);
  publish("kv@10.0.0.9:8000@m", number, 'b');  // topic of an unknown endpoint
  publish("kv", number, 'b');
  publish("kv@", number, 'b');
  publish("kv@10.0.0.2:8000@m", number, 'b');
  EXPECT_TRUE(soon_holds(1, 2));
  publish("kv@10.0.0.2:8000@m", number + 2, 'c');
  EXPECT_TRUE(soon_holds(1, 1)) << "one was lost: only the last is known";
  publish("kv@10.0.0.2:8000@m", 0, 'd');
  publish("kv@10.0.0.2:8000@m", 1, 'e');
  EXPECT_TRUE(soon_holds(1, 2)) << "the engine has started again";
}

// The engines of a pod share a topic, and each engine numbers its messages separately.
TEST_F(Collecting, RanksOfOneAddressAreToldApart) {
  ASSERT_TRUE(fleet.add({.name = "10.0.0.3:8000", .rank = 0}));
  ASSERT_TRUE(fleet.add({.name = "10.0.0.3:8001", .rank = 1}));
  for (std::uint64_t number = 0; number < 6000 && blocks(3) == 0; ++number) {
    publish("kv@10.0.0.3:8000@m", number, 'a', 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(soon_holds(3, 1)) << "the topic names rank 0, the batch rank 1";
  EXPECT_EQ(blocks(2), 0U);
  publish("kv@10.0.0.3:8000@m", 7, 'b', 0);
  EXPECT_TRUE(soon_holds(2, 1));
  // rank numbers may continue over hosts with two ranks each, so rank 2 is the first rank of a host
  publish("kv@10.0.0.3:8000@m", 8, 'c', 2);
  publish("kv@10.0.0.3@m", 9, 'd', 0);
  EXPECT_TRUE(soon_holds(2, 3));
  EXPECT_EQ(blocks(3), 1U);
  publish("kv@10.0.0.3:8001@m", 100, 'e', 0);  // another server on this host, which also publishes as rank 0
  publish("kv@10.0.0.3:8001@m", 101, 'f', 0);
  EXPECT_TRUE(soon_holds(3, 2)) << "messages before 100 were lost: these two are known";
  EXPECT_EQ(blocks(2), 3U);
}

TEST(CacheCollector, AnAddressThatCannotBeListenedAtIsAnError) {
  Fleet fleet;
  const auto made = CacheCollector::start("tcp://nowhere", "kv@", fleet, [](const Member&, auto, auto) {}, "field");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().field, "field");
}

}  // namespace
}  // namespace octavo::fleet
