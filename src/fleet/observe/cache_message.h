// A ZeroMQ message with an engine's KV cache events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <zmq.hpp>

namespace octavo::fleet {

// Frames of a live message: [topic, number, batch]. Frames of a replayed message: ["", number, batch] before
// vLLM 0.26, later ["", topic, number, batch].
struct CacheMessage {
  std::string topic;     // "" in replays before vLLM 0.26
  std::uint64_t number;  // the engine's message number
  std::string batch;     // see read_cache_batch()
};

constexpr std::int64_t kCacheMessageBytesMax = 64 << 20;  // limit; a longer message ends the connection

// -1: the number in the last message of a replay
inline constexpr std::uint64_t kReplayEnd = ~std::uint64_t{0};

// Reads a message without waiting. Sets `any` if there was a message. Returns nullopt if it is not a valid
// cache message.
std::optional<CacheMessage> receive_cache_message(zmq::socket_t& socket, bool& any);

}  // namespace octavo::fleet
