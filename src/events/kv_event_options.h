// Reads --kv-events-config, vLLM's JSON object that configures the publishing of KV cache events.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Names and defaults are the same as in vLLM. max_queue_size is accepted but has no effect, because
// KvEventLog has a fixed size.
struct KvEventOptions {
  bool enabled = false;
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint = {};  // if empty, earlier batches are not replayed
  int buffer_steps = 10'000;
  int hwm = 100'000;  // ZeroMQ's high-water mark: maximum number of messages queued for one subscriber
  std::string topic = {};
};

// Returns an error that names the field if a field is unknown or has a wrong value.
Result<KvEventOptions> parse_kv_events_config(std::string_view json);

// Returns whether the publisher binds the endpoint instead of connecting to it. As in vLLM, it binds if the
// endpoint contains "*" or "::", or is ipc or inproc. Unlike vLLM, it also binds TCP addresses to which no
// client can connect, such as "tcp://:5557" and "tcp://0.0.0.0:5557".
bool binds(std::string_view endpoint);
// Returns the endpoint in ZeroMQ's syntax, in which "*" means all interfaces: "tcp://:5557" becomes
// "tcp://*:5557".
std::string bind_address(const std::string& endpoint);

}  // namespace octavo
