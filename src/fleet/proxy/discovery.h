// Workers that a cluster tells of: its pods come and go, and the router's workers with them.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fleet/discover/kube_pool.h"
#include "fleet/proxy/dispatcher.h"

namespace octavo::fleet {

class Discovery {
 public:
  // Follows pods from now on; `dispatcher` outlives it. Workers from elsewhere stay.
  Discovery(Dispatcher& dispatcher, const std::vector<DiscoveredWorkers>& from);

 private:
  // Those of one source that are workers now.
  struct Known {
    Role role = Role::both;
    std::set<std::string> names = {};
  };
  void tell(Known& known, std::vector<Endpoint> endpoints);

  Dispatcher& dispatcher_;
  std::vector<std::unique_ptr<Known>> known_;
  std::vector<std::unique_ptr<KubePool>> pools_;
};

}  // namespace octavo::fleet
