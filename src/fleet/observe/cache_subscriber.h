// Subscribes to the KV cache events of all endpoints that publish them (vLLM's ZeroMQ publisher, `octavo
// serve --kv-events-config`), and orders them. If message numbers are missing, the subscriber requests a
// replay. If the endpoint cannot replay them, all its known blocks are dropped.
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

// Errors: ZeroMQ cannot connect to the address, on `field`.
Result<> check_zmq_endpoint(const std::string& endpoint, std::string_view field);

class CacheSubscriber {
 public:
  // Called on the subscriber's thread for each message, with the position after it. At the begin and end of a
  // connection and after a loss of events, it is called with the event `lost` and no position.
  using Deliver = std::function<void(const Member&, std::span<const CacheEvent>, const CachePosition&)>;
  // Returns the position up to which another source has provided the endpoint's events. Called on the
  // subscriber's thread before it connects to an endpoint that can replay. The subscriber continues from this
  // position, unless the replay shows a restart or a loss of events.
  using Known = std::function<CachePosition(const Member&)>;

  // fleet: must outlive the subscriber, which connects to members that answer probes.
  CacheSubscriber(const Fleet& fleet, Deliver deliver, Known known = {});
  ~CacheSubscriber();

 private:
  void run();

  const Fleet& fleet_;
  const Deliver deliver_;
  const Known known_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo::fleet
