// Workers that others tell of (Kubernetes, etcd, a file, DNS): they come and go by themselves.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fleet/proxy/dispatcher.h"

namespace octavo::fleet {

class Discovery {
 public:
  // Follows them from now on; `dispatcher` outlives it. Workers from elsewhere stay. disaggregated: each must
  // be for prefill or decode.
  Discovery(Dispatcher& dispatcher, const std::vector<DiscoveredWorkers>& from, bool disaggregated);

 private:
  // Those of one source that are workers now.
  struct Known {
    std::optional<Role> role = {};
    std::set<std::string> names = {};
  };
  void tell(Known& known, std::vector<Endpoint> endpoints);

  Dispatcher& dispatcher_;
  std::vector<std::unique_ptr<Known>> known_;
  const bool disaggregated_;
  std::vector<std::unique_ptr<KubePool>> kube_;
  std::vector<std::unique_ptr<EtcdPool>> etcd_;
  std::vector<std::unique_ptr<PolledPool>> polled_;
};

}  // namespace octavo::fleet
