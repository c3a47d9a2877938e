// Receives KV cache events of engines that connect to one address (llm-d's central mode). The topic names the
// endpoint: "kv@ip:port@model" or "kv@ip@model"; with several endpoints on one address, one per data-parallel
// rank, the batch's rank selects one. There is no replay: a lost message clears the endpoint's cache index.
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
  // `endpoint`: like "tcp://0.0.0.0:5557"; `topic`: what topics begin with. The fleet outlives this;
  // `deliver` is called on a separate thread. Errors: an address that cannot be listened at, on `field`.
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
