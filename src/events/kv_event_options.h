// --kv-events-config: vLLM's JSON object that says where KV cache events go.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Names and defaults are vLLM's. Of max_queue_size there is none: the queue is a ring that holds the whole
// cache at least twice.
struct KvEventOptions {
  bool enabled = false;
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint = {};  // "": past batches cannot be asked for
  int buffer_steps = 10'000;         // batches kept for replay
  int hwm = 100'000;                 // messages that ZeroMQ keeps for a slow subscriber
  std::string topic = {};
};

// Errors name the field.
Result<KvEventOptions> parse_kv_events_config(std::string_view json);

// Whether a publisher listens at the endpoint: vLLM's rule ("*" or "::" in it, ipc, inproc), and every TCP
// address that has no one host to connect to, like "tcp://:5557" and "tcp://0.0.0.0:5557".
bool binds(std::string_view endpoint);
// The endpoint as ZeroMQ binds it: a missing host is "*".
std::string bind_address(const std::string& endpoint);

}  // namespace octavo
