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

// `engine` moves TCP ports up by its number and gives other endpoints a suffix, so that several engines get
// an endpoint each. Errors name the field.
Result<KvEventOptions> parse_kv_events_config(std::string_view json);
std::string endpoint_of(const std::string& endpoint, int engine);

}  // namespace octavo
