// One ZeroMQ message with a batch of KV cache events. CacheSubscriber and CacheCollector receive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <zmq.hpp>

namespace octavo::fleet {

// A live message has the frames [topic, number, batch]. A replayed message has the frames ["", number,
// batch] before vLLM 0.26, and ["", topic, number, batch] since then.
struct CacheMessage {
  std::string topic;     // "" in replays before vLLM 0.26
  std::uint64_t number;  // sequence number, chosen by the engine
  std::string batch;     // see read_cache_batch()
};

constexpr std::int64_t kCacheMessageBytesMax = 64 << 20;  // a longer message ends the connection

// Number in the last message of a replay (-1 as unsigned).
inline constexpr std::uint64_t kReplayEnd = ~std::uint64_t{0};

// Receives a message if one is ready, and does not wait. Sets `any` if a message was ready. Returns nullopt
// if the message is not a valid cache message.
std::optional<CacheMessage> receive_cache_message(zmq::socket_t& socket, bool& any);

}  // namespace octavo::fleet
