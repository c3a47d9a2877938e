// A ZeroMQ message with KV cache events of an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <zmq.hpp>

namespace octavo::fleet {

// Live messages are [topic, number, batch]. Replayed messages are ["", number, batch] before vLLM 0.26, later
// ["", topic, number, batch].
struct CacheMessage {
  std::string topic;     // "" in replays before vLLM 0.26
  std::uint64_t number;  // the engine's message number
  std::string batch;     // see read_cache_batch()
};

constexpr std::int64_t kCacheMessageBytesMax = 64 << 20;  // a longer message ends the connection

inline constexpr std::uint64_t kReplayEnd = ~std::uint64_t{0};  // -1: the number of a replay's last message

// Never waits. nullopt: no message is available (then `any` is false), or it is not a cache message.
std::optional<CacheMessage> receive_cache_message(zmq::socket_t& socket, bool& any);

}  // namespace octavo::fleet
