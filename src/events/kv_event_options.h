// --kv-events-config: vLLM's JSON object with the destination of KV cache events.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Names and defaults are vLLM's. max_queue_size is ignored, because the queue is a ring that can hold
// the whole cache twice.
struct KvEventOptions {
  bool enabled = false;
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint = {};  // "": clients cannot request past batches
  int buffer_steps = 10'000;         // number of batches kept for replay
  int hwm = 100'000;                 // maximum messages that ZeroMQ keeps for a subscriber
  std::string topic = {};
};

// Errors name the field.
Result<KvEventOptions> parse_kv_events_config(std::string_view json);

// True if a publisher binds the endpoint instead of connecting to it. It follows vLLM's rule ("*" or
// "::" in the endpoint, ipc, inproc). It also binds TCP addresses that name no host to connect to, such as
// "tcp://:5557" and "tcp://0.0.0.0:5557".
bool binds(std::string_view endpoint);
// The endpoint in the form that ZeroMQ binds: a missing host becomes "*".
std::string bind_address(const std::string& endpoint);

}  // namespace octavo
