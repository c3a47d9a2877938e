#include "events/kv_event_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <msgpuck.h>

#include <array>
#include <cstring>
#include <zmq.hpp>

namespace octavo {
namespace {

using ::testing::HasSubstr;

struct Message {
  std::uint64_t number;
  std::string batch;
};

std::uint64_t number_of(const zmq::message_t& part) {
  std::uint64_t number = 0;
  EXPECT_EQ(part.size(), sizeof number);
  std::memcpy(&number, part.data(), sizeof number);
  return __builtin_bswap64(number);
}

std::vector<std::string> frames(zmq::socket_t& socket) {
  std::vector<std::string> parts;
  zmq::message_t part;
  do {
    (void)socket.recv(part);
    parts.push_back(part.to_string());
  } while (part.more());
  return parts;
}

Message receive(zmq::socket_t& socket) {
  const std::vector<std::string> parts = frames(socket);
  EXPECT_EQ(parts.size(), 4U);
  if (parts.size() != 4) return {~std::uint64_t{0}, {}};
  EXPECT_EQ(parts[0], "");
  const std::uint64_t number = number_of(zmq::message_t(parts[2]));
  EXPECT_EQ(parts[1], number == ~std::uint64_t{0} ? "" : "kv");
  return {number, parts[3]};
}

class Publishing : public ::testing::Test {
 protected:
  void write(std::uint64_t key, std::uint64_t parent, std::vector<std::int32_t> tokens) {
    log.write({KvEvent::Kind::stored, 0, {key, 9}, {parent, parent == 0 ? 0u : 9u}, {}}, tokens);
    log.flush();
  }

  KvEventOptions options{.enabled = true,
                         .endpoint = "tcp://127.0.0.1:*",
                         .replay_endpoint = "tcp://127.0.0.1:*",
                         .buffer_steps = 3,
                         .topic = "kv"};
  KvCache cache{8, 2, {CacheGroup{}}};
  std::unique_ptr<KvEventPublisher> publisher = KvEventPublisher::start(options, cache, 0).value();
  KvEventLog& log = publisher->log();
  zmq::context_t context;
};

// Requests a replay of all batches from `first` on. Returns the numbers of the received batches.
std::vector<std::uint64_t> replay(zmq::socket_t& client, std::uint8_t first) {
  const std::array<std::uint8_t, 8> from = {0, 0, 0, 0, 0, 0, 0, first};
  client.send(zmq::str_buffer(""), zmq::send_flags::sndmore);
  client.send(zmq::buffer(from));
  std::vector<std::uint64_t> numbers;
  for (Message m = receive(client); m.number != ~std::uint64_t{0}; m = receive(client)) {
    EXPECT_FALSE(m.batch.empty());
    numbers.push_back(m.number);
  }
  return numbers;
}

TEST_F(Publishing, ABatchIsVllmsMessage) {
  zmq::socket_t subscriber(context, zmq::socket_type::sub);
  subscriber.connect(publisher->endpoint());
  subscriber.set(zmq::sockopt::subscribe, "kv");
  subscriber.set(zmq::sockopt::rcvtimeo, 50);
  zmq::socket_t client(context, zmq::socket_type::dealer);
  client.connect(publisher->replay_endpoint());
  // A subscription takes time, so the first events may be lost.
  std::uint64_t key = 0;
  zmq::message_t topic;
  do {
    ++key;
    write(key, key - 1, {5, 300});
    while (
        // Each write becomes a separate batch.
        replay(client, static_cast<std::uint8_t>(key - 1)).empty()) {
    }
  } while (!subscriber.recv(topic) && key < 200);
  zmq::message_t number, batch;
  (void)subscriber.recv(number);
  (void)subscriber.recv(batch);
  EXPECT_EQ(topic.to_string(), "kv");
  const std::uint64_t sent = number_of(number);
  EXPECT_LT(sent, key) << "a message that took long may be of an earlier event";

  const char* at = batch.data<char>();
  ASSERT_EQ(mp_decode_array(&at), 3u);
  EXPECT_GT(mp_decode_double(&at), 1e9);
  ASSERT_EQ(mp_decode_array(&at), 1u);
  ASSERT_EQ(mp_decode_map(&at), 11u);
  const auto text = [&] {
    std::uint32_t size = 0;
    const char* begin = mp_decode_str(&at, &size);
    return std::string(begin, size);
  };
  EXPECT_EQ(text(), "type");
  EXPECT_EQ(text(), "BlockStored");
  EXPECT_EQ(text(), "block_hashes");
  ASSERT_EQ(mp_decode_array(&at), 1u);
  EXPECT_EQ(mp_decode_uint(&at), sent + 1);
}

TEST_F(Publishing, PastBatchesCanBeAskedFor) {
  zmq::socket_t client(context, zmq::socket_type::dealer);
  client.connect(publisher->replay_endpoint());
  for (std::uint64_t key = 1; key <= 5; ++key) {
    write(key, 0, {1, 2});
    while (
        // Each write becomes a separate batch.
        replay(client, static_cast<std::uint8_t>(key - 1)).empty()) {
    }
  }
  EXPECT_EQ(replay(client, 3), (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(replay(client, 0), (std::vector<std::uint64_t>{2, 3, 4}));
  EXPECT_EQ(replay(client, 5), std::vector<std::uint64_t>{});
}

// Clients of vLLM before 0.26 use REQ sockets. A request then gets a single reply, without the topic.
TEST_F(Publishing, AReqClientGetsTheFramingBeforeVllm026) {
  write(1, 0, {1, 2});
  zmq::socket_t newer(context, zmq::socket_type::dealer);
  newer.connect(publisher->replay_endpoint());
  while (replay(newer, 0).empty()) continue;
  zmq::socket_t older(context, zmq::socket_type::req);
  older.connect(publisher->replay_endpoint());
  const std::array<std::uint8_t, 8> first = {};
  older.send(zmq::buffer(first));
  const std::vector<std::string> parts = frames(older);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(number_of(zmq::message_t(parts[0])), 0U);
  EXPECT_FALSE(parts[1].empty());
}

TEST_F(Publishing, AnEndpointWithAHostIsConnectedTo) {
  EXPECT_TRUE(publisher->bound());
  zmq::socket_t collector(context, zmq::socket_type::sub);
  collector.bind("tcp://127.0.0.1:*");
  KvEventOptions connects = options;
  connects.endpoint = collector.get(zmq::sockopt::last_endpoint);
  connects.replay_endpoint = "";
  EXPECT_FALSE(KvEventPublisher::start(connects, cache, 0).value()->bound());
}

TEST(KvEventBatch, NamesStandForTheDigest) {
  const KvEvent event{KvEvent::Kind::stored, 0, {1, 9}, {}, {3, 4}};
  const std::array<std::int32_t, 2> tokens = {5, 6};
  const auto published = [&](const KvContentNames* names) {
    KvEventBatch batch(2, {0});
    batch.add(event, tokens, names);
    return batch.finish(0, 0);
  };
  const auto text = [](const std::string& value) { return static_cast<char>(0xa0 + value.size()) + value; };
  const std::string nil = "\xc0", one = "\x91", two = "\x92",
                    digest =
                        "\xd9\x20"
                        "00000000000000040000000000000003";
  const KvContentNames adapter{"a0", ""}, both{"a0", "mine"};
  EXPECT_THAT(published(nullptr),
              HasSubstr(text("lora_name") + nil + text("extra_keys") + one + one + digest));
  EXPECT_THAT(published(&adapter),
              HasSubstr(text("lora_name") + text("a0") + text("extra_keys") + one + one + text("a0")));
  EXPECT_THAT(published(&both), HasSubstr(text("extra_keys") + one + two + text("a0") + text("mine")));
}

TEST(KvEventPublisher, AnEndpointThatCannotBeUsedIsNamed) {
  const KvCache cache(8, 2, {CacheGroup{}});
  const auto publisher = KvEventPublisher::start({.enabled = true, .endpoint = "tcp://*:nowhere"}, cache, 0);
  ASSERT_FALSE(publisher.has_value());
  EXPECT_NE(publisher.error().message.find("tcp://*:nowhere"), std::string::npos);
}

}  // namespace
}  // namespace octavo
