// Subscribes to the KV cache events of all endpoints that publish events (vLLM's ZeroMQ publisher, or
// `octavo serve --kv-events-config`), and delivers the events in order to the balancer. If messages are
// lost, the subscriber requests a replay. If the replay does not contain the lost messages, all known
// blocks of the endpoint are dropped.
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

// Returns an error on `field` if ZeroMQ cannot connect to the address.
Result<> check_zmq_endpoint(const std::string& endpoint, std::string_view field);

class CacheSubscriber {
 public:
  // Called on the subscriber's thread for each message, with the position after the message. When a
  // connection begins or ends, or events are lost, it is called with the event `lost` and an empty
  // position.
  using Deliver = std::function<void(const Member&, std::span<const CacheEvent>, const CachePosition&)>;
  // Returns the position up to which another source has provided the endpoint's events. Called on the
  // subscriber's thread before it connects to an endpoint that can replay. The subscriber continues from
  // this position, unless the replay shows that the endpoint has restarted or that events are lost.
  using Known = std::function<CachePosition(const Member&)>;

  // Connects to all members that answer probes. `fleet` must outlive the subscriber.
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
