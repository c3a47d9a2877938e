// One message of an engine that publishes its KV cache events, as ZeroMQ brings it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <zmq.hpp>

namespace octavo::fleet {

// Live messages are [topic, number, batch]. Replayed ones are ["", number, batch] before vLLM 0.26, and ["",
// topic, number, batch] since then.
struct CacheMessage {
  std::string topic;     // "" in replays before vLLM 0.26
  std::uint64_t number;  // counted by the engine
  std::string batch;     // see read_cache_batch()
};

constexpr std::int64_t kCacheMessageBytesMax = 64 << 20;  // a longer one ends the connection

inline constexpr std::uint64_t kReplayEnd = ~std::uint64_t{0};  // -1: the number of a replay's last message

// Never waits. Returns nullopt if no message is available (any is false), or if it is not a cache message.
std::optional<CacheMessage> receive_cache_message(zmq::socket_t& socket, bool& any);

}  // namespace octavo::fleet
