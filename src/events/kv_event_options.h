// --kv-events-config: vLLM's JSON object for KV cache events.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Names and defaults are vLLM's. max_queue_size has no effect, because the queue is a ring that can hold the
// whole cache twice.
struct KvEventOptions {
  bool enabled = false;
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint = {};  // "": no replay of earlier batches
  int buffer_steps = 10'000;         // batches kept for replay
  int hwm = 100'000;                 // maximum number of messages in ZeroMQ's queue for a subscriber
  std::string topic = {};
};

// Errors name the field.
Result<KvEventOptions> parse_kv_events_config(std::string_view json);

// Returns whether a publisher binds the endpoint instead of connecting to it. Follows vLLM's rule: it binds
// if the endpoint contains "*" or "::", or is ipc or inproc. Also binds TCP addresses without a host to
// connect to, such as "tcp://:5557" and "tcp://0.0.0.0:5557".
bool binds(std::string_view endpoint);
// Returns the endpoint as ZeroMQ binds it: a missing host becomes "*".
std::string bind_address(const std::string& endpoint);

}  // namespace octavo
