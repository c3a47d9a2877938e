// One message of an engine that publishes its KV cache events, as ZeroMQ brings it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <zmq.hpp>

namespace octavo::fleet {

struct CacheMessage {
  std::string topic;     // of a replay nothing
  std::uint64_t number;  // the engine counts them
  std::string batch;     // see read_cache_events()
};

constexpr std::int64_t kCacheMessageBytesMax = 64 << 20;  // a longer one ends the connection

// Never waits. Nothing: no message is there (any is false), or it is none of these.
std::optional<CacheMessage> receive_cache_message(zmq::socket_t& socket, bool& any);

}  // namespace octavo::fleet
