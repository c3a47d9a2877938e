// Receives KV cache events from engines that connect to one address (llm-d's central mode). The topic names
// the endpoint: "kv@ip:port@model" or "kv@ip@model". If an address has an endpoint for each data-parallel
// rank, the rank in the batch selects one. Engines do not replay messages: after a lost message, the index of
// the endpoint is cleared.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fleet/observe/cache_subscriber.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

class CacheCollector {
 public:
  // endpoint: such as "tcp://0.0.0.0:5557". topic: prefix of topics. fleet: must outlive the collector.
  // deliver: called on a separate thread. Errors: the address is not available, on `field`.
  static Result<std::unique_ptr<CacheCollector>> start(const std::string& endpoint, const std::string& topic,
                                                       const Fleet& fleet, CacheSubscriber::Deliver deliver,
                                                       std::string_view field);
  ~CacheCollector();

 private:
  struct State;
  explicit CacheCollector(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
