// A list of endpoints that changes: Kubernetes pods, keys in etcd, a file, or a DNS name. The router and
// the picker use it.
#pragma once

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "fleet/discover/etcd_pool.h"
#include "fleet/discover/kube_pool.h"
#include "fleet/discover/polled_pool.h"

namespace octavo::fleet {

using EndpointSourceOptions = std::variant<KubePoolOptions, EtcdOptions, PolledOptions>;

class EndpointSource {
 public:
  // Calls `listed` on the source's thread with the first list, and after each change. Calls `rules` with the
  // rules of a Kubernetes InferencePool.
  EndpointSource(const EndpointSourceOptions& options, std::function<void(std::vector<Endpoint>)> listed,
                 std::function<void(RequestRules)> rules = {});

 private:
  std::variant<std::unique_ptr<KubePool>, std::unique_ptr<EtcdPool>, std::unique_ptr<PolledPool>> pool_;
};

}  // namespace octavo::fleet
