// Subscribes to the KV cache events of every endpoint that publishes them (vLLM's ZeroMQ publisher,
// `octavo serve --kv-events-config`), and puts them in order. A replay fills gaps in the numbers if the
// endpoint supports it. A gap that cannot be filled discards all known blocks of the endpoint.
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

// Errors: ZeroMQ cannot connect to this address, on `field`.
Result<> check_zmq_endpoint(const std::string& endpoint, std::string_view field);

class CacheSubscriber {
 public:
  // Called on the subscriber's thread for each message of the endpoint, with the position after it. The event
  // `lost`, without a position, is delivered when a connection begins or ends, or events are missing.
  using Deliver = std::function<void(const Member&, std::span<const CacheEvent>, const CachePosition&)>;
  // Returns the position up to which the endpoint's events are already known from another source.
  // Called on the same thread before the subscriber connects to an endpoint that replays. The subscriber
  // continues from there, unless the replay shows a restart of the endpoint or a loss of the next events.
  using Known = std::function<CachePosition(const Member&)>;

  // The fleet must outlive the subscriber. Members may change; it subscribes to members that answer probes.
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
