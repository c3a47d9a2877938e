// Receives KV cache events from engines that connect to one ZeroMQ address of this program (llm-d's central
// mode). The topic of a message names the endpoint: "kv@ip:port@model" or "kv@ip@model". If several
// data-parallel ranks share the topic's address, the rank in the batch selects the endpoint. Engines cannot
// replay messages in this mode, so a lost message clears the endpoint's index.
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
  // `endpoint` is the address to bind, such as "tcp://0.0.0.0:5557". `topic` is the prefix of the topics to
  // receive. `fleet` must outlive the collector. `deliver` is called on the collector's thread. If the
  // collector cannot bind the address, returns an error that names `field`.
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
