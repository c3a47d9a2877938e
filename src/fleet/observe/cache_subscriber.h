// Listens to the KV cache events of every endpoint that publishes them (vLLM's ZeroMQ publisher, `octavo
// serve
// --kv-events-config`), and puts them in order: a gap in the numbers is filled by a replay where the endpoint
// answers replays; what cannot be filled makes what was known of its cache void.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <thread>

#include "base/error.h"
#include "fleet/index/cache_event.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

// Errors: no address that ZeroMQ can connect to, on `field`.
Result<> check_zmq_endpoint(const std::string& endpoint, std::string_view field);

class CacheSubscriber {
 public:
  // Called on the subscriber's thread. A first event `cleared` begins each connection.
  using Deliver = std::function<void(const Member&, std::span<const CacheEvent>)>;

  // The fleet outlives this. Its members come and go; those that answer probes are listened to.
  CacheSubscriber(const Fleet& fleet, Deliver deliver);
  ~CacheSubscriber();

 private:
  void run();

  const Fleet& fleet_;
  const Deliver deliver_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo::fleet
