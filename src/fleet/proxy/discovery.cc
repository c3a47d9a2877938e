#include "fleet/proxy/discovery.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace octavo::fleet {

Discovery::Discovery(Dispatcher& dispatcher, const std::vector<DiscoveredWorkers>& from)
    : dispatcher_(dispatcher) {
  for (const DiscoveredWorkers& source : from) {
    known_.push_back(std::make_unique<Known>(Known{.role = source.role}));
    pools_.push_back(std::make_unique<KubePool>(
        source.pods, [this, known = known_.back().get()](std::vector<Endpoint> endpoints) {
          tell(*known, std::move(endpoints));
        }));
  }
}

void Discovery::tell(Known& known, std::vector<Endpoint> endpoints) {
  std::erase_if(known.names, [&](const std::string& name) {
    if (std::ranges::find(endpoints, name, &Endpoint::name) != endpoints.end()) return false;
    log_info("{} is gone", name);
    const auto view = dispatcher_.fleet().view();
    if (const Member* member = view->find(name)) dispatcher_.remove(member->id);
    return true;
  });
  for (Endpoint& endpoint : endpoints) {
    if (known.names.contains(endpoint.name)) continue;
    const std::string name = endpoint.name;
    endpoint.role = known.role;
    if (const auto id = dispatcher_.add(std::move(endpoint))) {
      log_info("{} is there", name);
      known.names.insert(name);
    } else {
      log_warning("a pod is left out: {}", id.error().message);
    }
  }
}

}  // namespace octavo::fleet
