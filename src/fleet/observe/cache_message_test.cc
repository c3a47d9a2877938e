#include "fleet/observe/cache_message.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::fleet {
namespace {

using namespace std::string_literals;

const std::string kFive = "\0\0\0\0\0\0\0\5"s;

std::optional<CacheMessage> received(const std::vector<std::string>& frames) {
  zmq::context_t context;
  zmq::socket_t sender(context, zmq::socket_type::pair), receiver(context, zmq::socket_type::pair);
  sender.bind("inproc://frames");
  receiver.connect("inproc://frames");
  for (std::size_t i = 0; i < frames.size(); ++i)
    sender.send(zmq::buffer(frames[i]),
                i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  bool any = false;
  auto message = receive_cache_message(receiver, any);
  EXPECT_TRUE(any);
  EXPECT_FALSE(receive_cache_message(receiver, any)) << "nothing is left";
  EXPECT_FALSE(any);
  return message;
}

TEST(CacheMessage, LiveOnesAndBothFramingsOfReplays) {
  const auto live = received({"kv@pod", kFive, "batch"});
  ASSERT_TRUE(live);
  EXPECT_EQ(live->topic, "kv@pod");
  for (const std::vector<std::string>& frames :
       {std::vector<std::string>{"", kFive, "batch"}, {"", "kv@pod", kFive, "batch"}, {"", "", kFive, "batch"}}) {
    const auto message = received(frames);
    ASSERT_TRUE(message) << frames.size();
    EXPECT_EQ(message->number, 5U);
    EXPECT_EQ(message->batch, "batch");
  }
  const std::string end(8, '\xff');
  EXPECT_EQ(received({"", end, ""})->number, kReplayEnd);
  EXPECT_EQ(received({"", "", end, ""})->number, kReplayEnd);
}

TEST(CacheMessage, OthersAreNone) {
  for (const std::vector<std::string>& frames :
       {std::vector<std::string>{"x"}, {kFive, "batch"}, {"kv", "5", "batch"}, {"kv", "kv", kFive, "batch"},
        {"", "", "kv", kFive, "batch"}, std::vector<std::string>(12, kFive)})
    EXPECT_FALSE(received(frames)) << frames.size();
}

}  // namespace
}  // namespace octavo::fleet
