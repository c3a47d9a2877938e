#include "fleet/observe/cache_subscriber.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <set>
#include <zmq.hpp>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "events/kv_event_publisher.h"
#include "events/kv_event_wire.h"
#include "fleet/index/held_blocks.h"

namespace octavo::fleet {
namespace {

class Subscribing : public testing::Test {
 protected:
  void publish(int buffer_steps = 1000) {
    options.buffer_steps = buffer_steps;
    publisher = KvEventPublisher::start(options, cache, 0).value();
  }
  void subscribe(bool with_replay) {
    Endpoint endpoint{.name = "e", .url = "http://e", .kv_events_endpoint = options.endpoint};
    if (with_replay) endpoint.kv_replay_endpoint = options.replay_endpoint;
    const EndpointId id = *fleet.add(std::move(endpoint));
    available(id, true);
    subscriber.emplace(
        fleet,
        [this](const Member& member, std::span<const CacheEvent> events, const CachePosition& now) {
          const std::lock_guard lock(mutex);
          received.insert(member.id);
          for (const CacheEvent& event : events) held.apply(member.id, event);
          position = now;
        },
        [this](const Member&) { return position; });
  }
  void available(EndpointId id, bool is) {
    fleet.update(id, [&](EndpointState& s) {
      s.availability = is ? Availability::available : Availability::unhealthy;
    });
  }
  // Stores block `key`, whose parent is block key - 1, with two tokens.
  void write(std::uint64_t key) {
    const auto token = static_cast<std::int32_t>(key);
    KvEventLog& log = publisher->log();
    log.write({KvEvent::Kind::stored, 0, {key, 9}, {key - 1, key == 1 ? 0u : 9u}, {}},
              std::vector<std::int32_t>{token, token});
    log.flush();
  }
  std::size_t blocks() {
    const std::lock_guard lock(mutex);
    return held.blocks(0);
  }
  bool soon_holds(std::size_t count) {
    for (int i = 0; i < 6000 && blocks() != count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return blocks() == count;
  }

  ScratchDirectory scratch;
  KvEventOptions options{.enabled = true,
                         .endpoint = "ipc://" + (scratch.path() / "events").string(),
                         .replay_endpoint = "ipc://" + (scratch.path() / "replay").string()};
  KvCache cache{64, 2, {CacheGroup{}}};
  std::unique_ptr<KvEventPublisher> publisher;
  Fleet fleet;
  std::mutex mutex;
  HeldBlocks held{1000};
  std::set<EndpointId> received;  // members whose events were delivered
  CachePosition position;      // position after the events in `held`
  std::optional<CacheSubscriber> subscriber;
};

TEST_F(Subscribing, LearnsWhatWasToldBeforeItCameAndWhatIsToldAfter) {
  publish();
  write(1);
  write(2);
  subscribe(true);
  EXPECT_TRUE(soon_holds(2));
  for (std::uint64_t key = 3; key <= 20; ++key) write(key);
  EXPECT_TRUE(soon_holds(20));
}

TEST_F(Subscribing, AnEngineThatStartsAgainHoldsNothing) {
  publish();
  write(1);
  write(2);
  subscribe(true);
  EXPECT_TRUE(soon_holds(2));
  publisher.reset();
  EXPECT_TRUE(soon_holds(0)) << "its connection is lost";
  publish();
  write(1);
  EXPECT_TRUE(soon_holds(1));
}

// Answers the next request for a replay on a ROUTER socket: with one batch of number 0, or with none.
void answer_replay(zmq::socket_t& router, const std::optional<std::string>& batch) {
  zmq::message_t client, request;
  ASSERT_TRUE(router.recv(client)) << "no request for a replay";
  for (bool more = client.more(); more; more = request.more()) (void)router.recv(request);
  const auto send = [&](std::uint64_t number, const std::string& content) {
    router.send(zmq::buffer(client.data(), client.size()), zmq::send_flags::sndmore);
    for (int i = 0; i < 2; ++i) router.send(zmq::str_buffer(""), zmq::send_flags::sndmore);
    const std::uint64_t big_endian = __builtin_bswap64(number);
    router.send(zmq::buffer(&big_endian, sizeof big_endian), zmq::send_flags::sndmore);
    router.send(zmq::buffer(content));
  };
  if (batch) send(0, *batch);
  send(~std::uint64_t{0}, {});
}

// The subscription becomes active some time after the connection. This engine publishes its only batch after
// it has answered the first request for a replay, and before the subscription is active.
TEST_F(Subscribing, ABatchBetweenTheReplayAndTheSubscriptionNeedsNoFurtherEvent) {
  zmq::context_t context;
  zmq::socket_t live(context, zmq::socket_type::pub), replays(context, zmq::socket_type::router);
  live.bind(options.endpoint);
  replays.set(zmq::sockopt::linger, 0);
  replays.set(zmq::sockopt::rcvtimeo, 60'000);
  replays.bind(options.replay_endpoint);
  subscribe(true);
  answer_replay(replays, std::nullopt);
  KvEventBatch batch(2, {0});
  batch.add({KvEvent::Kind::stored, 0, {1, 9}, {}, {}}, std::vector<std::int32_t>{1, 1});
  answer_replay(replays, batch.finish(0, 0));
  EXPECT_TRUE(soon_holds(1));
}

TEST_F(Subscribing, WithoutReplaysItLearnsFromNowOn) {
  publish();
  subscribe(false);
  // The first events may be lost, because the subscription takes time. Each block begins a prompt.
  std::uint64_t key = 0;
  const auto one_more = [&] {
    ++key;
    publisher->log().write({KvEvent::Kind::stored, 0, {key, 9}, {}, {}},
                           std::vector<std::int32_t>{1, 1 + static_cast<std::int32_t>(key)});
    publisher->log().flush();
  };
  for (int i = 0; i < 6000 && blocks() == 0; ++i) {
    one_more();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::size_t before = blocks();
  EXPECT_GT(before, 0U);
  one_more();
  EXPECT_TRUE(soon_holds(before + 1) || blocks() > before);
}

// A router that starts with the index of another router does this. The engine can replay only its last 5
// messages.
TEST_F(Subscribing, WhatIsKnownFromElsewhereIsGoneOnFrom) {
  publish(5);
  write(1);
  subscribe(true);
  ASSERT_TRUE(soon_holds(1)) << "now it hears what is told";
  for (std::uint64_t key = 2; key <= 20; ++key) {
    write(key);
    ASSERT_TRUE(soon_holds(key));
  }
  subscriber.reset();
  for (std::uint64_t key = 21; key <= 23; ++key) write(key);
  fleet.remove(0);
  fleet.release(0);
  subscribe(true);
  EXPECT_TRUE(soon_holds(23));
  write(24);
  EXPECT_TRUE(soon_holds(24));
}

TEST_F(Subscribing, WhatIsKnownOfAnEarlierRunIsLearntAnew) {
  publish();
  subscribe(true);
  for (std::uint64_t key = 1; key <= 3; ++key) write(key);
  ASSERT_TRUE(soon_holds(3));
  subscriber.reset();
  // The engine has restarted, and has sent more or fewer messages than the known position.
  for (const std::uint64_t blocks_now : {5, 1}) {
    publisher.reset();
    publish();
    for (std::uint64_t key = 1; key <= blocks_now; ++key) write(100 + key);
    fleet.remove(0);
    fleet.release(0);
    subscribe(true);
    // Only the first block begins a prompt. The other blocks are ignored, because their parents are unknown.
    EXPECT_TRUE(soon_holds(0));
    write(1);
    EXPECT_TRUE(soon_holds(1));
    subscriber.reset();
  }
}

TEST_F(Subscribing, WhoIsUnhealthyIsListenedToAnewWhenItIsBack) {
  publish();
  write(1);
  subscribe(true);
  EXPECT_TRUE(soon_holds(1));
  available(0, false);
  // The subscriber checks all members together. When it has subscribed to the second member, it has also
  // seen the state of the first.
  const EndpointId second = *fleet.add({.name = "f", .url = "http://f", .kv_events_endpoint = options.endpoint});
  available(second, true);
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return received.contains(second);
  }));
  {
    const std::lock_guard lock(mutex);
    held.clear(0);  // the router also does this
    position = {};
  }
  available(0, true);
  EXPECT_TRUE(soon_holds(1));
}

TEST(CacheSubscriber, AWrongAddressIsAnErrorThatNamesTheField) {
  EXPECT_TRUE(check_zmq_endpoint("tcp://127.0.0.1:5557", "kv-events"));
  for (const std::string wrong : {"", "5557", "http://h:1", "tcp://h"}) {
    const auto checked = check_zmq_endpoint(wrong, "kv-events");
    ASSERT_FALSE(checked) << wrong;
    EXPECT_EQ(checked.error().field, "kv-events");
  }
}

}  // namespace
}  // namespace octavo::fleet
