#include "events/kv_event_options.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(KvEventOptions, ReadsVllmsFields) {
  const auto options = parse_kv_events_config(
      R"({"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:6000",
          "replay_endpoint": "tcp://*:6001", "buffer_steps": 5, "hwm": 7, "max_queue_size": 9, "topic": "kv"})");
  ASSERT_TRUE(options.has_value());
  EXPECT_TRUE(options->enabled);
  EXPECT_EQ(options->endpoint, "tcp://*:6000");
  EXPECT_EQ(options->replay_endpoint, "tcp://*:6001");
  EXPECT_EQ(options->buffer_steps, 5);
  EXPECT_EQ(options->hwm, 7);
  EXPECT_EQ(options->topic, "kv");
  EXPECT_FALSE(parse_kv_events_config("{}")->enabled);
  EXPECT_FALSE(parse_kv_events_config(R"({"enable_kv_cache_events": true, "publisher": "null"})")->enabled);
}

TEST(KvEventOptions, ErrorsNameTheField) {
  for (const auto& [json, text] :
       std::vector<std::pair<std::string, std::string>>{{"[]", "JSON object"},
                                                        {R"({"hwm": -1})", "[0, 10000000]"},
                                                        {R"({"topic": 1})", "string"},
                                                        {R"({"publisher": "kafka"})", "kafka"},
                                                        {R"({"endpoints": "x"})", "endpoints"}}) {
    const auto options = parse_kv_events_config(json);
    ASSERT_FALSE(options.has_value()) << json;
    EXPECT_NE(options.error().message.find(text), std::string::npos) << options.error().message;
  }
}

TEST(KvEventOptions, AnAddressWithoutOneHostIsListenedAt) {
  for (const char* endpoint : {"tcp://*:5557", "tcp://:5557", "tcp://0.0.0.0:5557", "tcp://[::]:5557",
                               "ipc:///tmp/kv", "inproc://kv"})
    EXPECT_TRUE(binds(endpoint)) << endpoint;
  for (const char* endpoint : {"tcp://127.0.0.1:5557", "tcp://router:5557", "tcp://[fe80:0:0:0:0:0:0:1]:5557"})
    EXPECT_FALSE(binds(endpoint)) << endpoint;
  EXPECT_EQ(bind_address("tcp://:5557"), "tcp://*:5557");
  EXPECT_EQ(bind_address("tcp://0.0.0.0:5557"), "tcp://0.0.0.0:5557");
}

}  // namespace
}  // namespace octavo
